"""What the engine says to users, as templates for the catalogues; a test makes the real sentences and finds each here."""

from __future__ import annotations

from app.core.words import mark

SENTENCES: tuple[str, ...] = (
    # Loading
    mark("Fetching the starter model"),
    mark("Unpacking the starter model"),
    mark("Preparing the starter model"),
    mark("Starter model ready"),
    mark("Waiting for another window to set up the starter model"),
    mark("Loading the target"),
    mark("Loading the tokenizer"),
    mark("Loading the draft"),
    mark("Measuring this machine"),
    mark("Checking the draft"),
    mark("Opening the prefix cache"),
    mark("Ready"),
    mark("Loading was cancelled: nothing was loaded."),
    mark("No model is loaded: choose one in the model menu."),
    mark("The engine failed ({kind}): try again; the details are in the log."),
    mark("The engine was closed: load the model again."),
    mark("The memory ran out: close other programs or choose a smaller model."),
    mark("This machine is out of memory, so the answer was stopped: close other programs, or choose a smaller model."),
    mark(
        "{name} needs about {needed} GB of memory with {context} tokens of context, and models may use {available} GB here: choose "
        "a smaller model."
    ),
    mark("{name} is not on this machine: fetch it with `slipstream models add {again}`."),
    mark("{name} is neither a model folder nor a hub id: check the path."),
    mark("{folder} is not a folder: give the folder of a downloaded model."),
    mark("{folder} has no config.json: give the folder of a complete model."),
    mark("{folder} has no config.json: choose the folder of a model."),
    mark("{folder} has no model.safetensors: download the model again."),
    mark("{file} cannot be read ({reason}): download the model again."),
    mark("{file} is missing: download the model again."),
    mark("{folder} has no tokenizer: download the model again."),
    mark("{file} is damaged or incomplete ({reason}): download the model again."),
    mark("{file} lacks {key}: the model is incomplete, download it again."),
    mark("The model in {folder} cannot be loaded ({reason}): download it again."),
    mark("The tokenizer in {folder} cannot be read ({reason}): download the model again."),
    mark("The catalog {file} cannot be read: install Slipstream again."),
    mark("The starter draft is not in {folder}: install Slipstream again."),
    mark("The starter model is not usable ({reason}): run `slipstream models add starter`."),
    mark("There is no room left for the starter model in {folder}: free {size} MB and try again."),
    mark("The draft {name} belongs to another target ({reason}): choose the draft made for this one."),
    mark("The draft in {folder} {reason}: it is not a complete DFlash checkpoint."),
    mark("{name} has no draft to keep in {bits} bits: load it without draft_bits."),
    mark(
        "The draft in {folder} cannot be kept in {bits} bits: its rows of {sizes} values do not divide into groups of {group}. "
        "Load it without draft_bits."
    ),
    mark(
        "The cache of {family} models cannot be kept in {bits} bits, only that of plain attention models can: load it without "
        "kv_bits."
    ),
    mark(
        "The cache of {family} models cannot be kept in {bits} bits: its heads of size {sizes} do not divide into groups of "
        "{group}. Load it without kv_bits."
    ),
    mark(
        "The cache of {family} models cannot be kept in {bits} bits: its attention reads it in its own way. Load it without "
        "kv_bits."
    ),
    mark("Only keys and values of plain attention can be kept in fewer bits, and {family} models have other caches."),
    mark("Its heads of size {size} do not divide into groups of {group}."),
    mark("There is no draft to keep in fewer bits."),
    mark("The draft learned from your chats cannot be used, so the pair's own is ({reason})"),
    mark(
        "In a short check the draft's first guess was right {right} of {cycles} times: it was probably trained for another "
        "model, or its files are of a kind that is read wrongly. Answers stay the model's own, but nothing is gained: choose "
        "another draft or none."
    ),
    mark(
        "This model has no chat template, so it is given the bare text: choose a model that is trained to chat where an answer is "
        "wanted."
    ),
    mark(
        "This model has no chat template, so it is given the bare text: its tokenizer_config.json is missing, download the model "
        "again."
    ),
    # Answering
    mark("The prompt is empty: type something to answer."),
    mark("The prompt has {tokens} tokens and the model's context holds {context}: shorten it or start a new chat."),
    mark("The context of {context} tokens is full: start a new chat or shorten this one."),
    mark("The chat does not fit the context: its oldest {count} messages ({tokens} tokens) are left out."),
    mark("Approximate: {kept} of the prompt's {total} tokens are read."),
    mark("This model cannot read a prompt in part, its cache has no row for each token ({kinds}): leave sparse prefill off."),
    mark("This model's tokenizer does not say where its tokens stand in a text: leave sparse prefill off."),
    mark("The model's chat template refused this chat ({reason}): start a new chat."),
    mark(
        "The model's output is not a number, so the answer ends here: try again, and if it happens again download the model anew "
        "or choose another; its files are damaged or quantised too coarsely."
    ),
    # Why speculation is on or off
    mark("You chose plain decoding."),
    mark("This model has no draft."),
    mark("this model has no draft"),
    mark("Lookup drafting: {reason}."),
    mark("Plain decoding: {reason}."),
    mark("there is no such drafter"),
    mark("on this machine no block length gives, bit for bit, what single steps give"),
    mark("its layers do not return one residual stream"),
    mark("its layers are not laid out as embed_tokens and layers"),
    mark("its cache is not plain key/value ({kinds})"),
    mark("Plain decoding is faster here: what repeats itself goes on differently"),
    mark("Plain decoding is faster here: the draft's next token is right {share} of the time"),
    mark("Up to {count} tokens are looked up where the text repeats itself"),
    mark("{count} tokens are proposed: the draft's next token is right {share} of the time"),
    mark("the block length is fixed"),
    # Where cached tokens came from
    mark("memory"),
    mark("disk"),
    mark("turned off"),
    mark("the prompt is read in part only"),
    mark("this model's cache cannot be kept ({kinds})"),
    # Identity of two answers
    mark("bit-equal at every block length"),
    mark("no choice was near enough to a tie for rounding to change it"),
    mark("bit-equal at widths {widths}, and no choice was near enough to a tie for rounding to change it"),
    mark("rounding or a fault at token {place}: `slipstream bench` measures how near a tie it was"),
    # Learning
    mark("Writing answers"),
    mark("Inventing questions"),
    mark("This model cannot learn: load it by its name first."),
    mark("This model has no draft to go on from: choose a pair with a draft."),
    mark("Drafts of {family} models cannot be trained here: choose another pair."),
    mark("What was learned in {folder} cannot be deleted ({reason}): delete it by hand."),
    mark("What is kept of prompts in {folder} cannot be deleted ({reason}): delete it by hand."),
    mark("What was learned cannot be kept in {folder} ({reason}): make room on the disk."),
    # Getting models: what happened
    mark("The certificate of {host} is not trusted here"),
    mark("The proxy refused the connection"),
    mark("The proxy cannot be reached"),
    mark("The proxy asks for a user name and password"),
    mark("{host} cannot be reached"),
    mark("{host} was asked too often"),
    mark("{host} has a fault (status {status})"),
    mark("{host} cut the connection"),
    mark("{host} gave an answer that is not the hub's"),
    mark("The hub has no {name}, or it is private"),
    mark("The access token is not valid or does not allow this"),
    mark("{name} needs an access token"),
    mark("{name} is given only to those who accept its terms"),
    mark("{name} holds no model in the safetensors format"),
    mark("The disk is full"),
    mark("{folder} cannot be written ({reason})"),
    mark("{name} needs {needed} and {free} are free"),
    mark("{name} needs {needed} and {free} are free, of which other downloads will take {taken}"),
    mark("{file} arrived damaged twice"),
    mark("{file} arrived damaged: fetching it again"),
    mark("HF_HUB_OFFLINE forbids asking the hub"),
    mark("No draft is known for {name}: it runs with lookup, which proposes what stood in the text before"),
    mark("{what}: trying again in {count} s"),
    # Getting models: what to do
    mark("if your network inspects traffic, add its certificate to the system or name its file in SSL_CERT_FILE."),
    mark("check HTTPS_PROXY and the proxy's user name and password."),
    mark("check HTTPS_PROXY, or the proxy in the system's settings."),
    mark("put them into HTTPS_PROXY."),
    mark("check the network and try again."),
    mark("check the network and go on with it."),
    mark("try again later."),
    mark("try again in {count} seconds; with an access token it allows more."),
    mark("try again in some minutes; with an access token it allows more."),
    mark("check HF_ENDPOINT."),
    mark("check the name; a private one needs an access token."),
    mark("make a new one and give it to Slipstream."),
    mark("give Slipstream one."),
    mark("accept them on its page with the account that your token belongs to, then try again."),
    mark("accept them on its page, then give Slipstream an access token of that account."),
    mark("free some space and go on with the download; what has arrived is kept."),
    mark("check the folder and try again."),
    mark("free at least {size}, or let HF_HOME name a folder on another disk."),
    mark("try again later; if it stays so, use another network."),
    mark("unset HF_HUB_OFFLINE and start again."),
    # Having models
    mark("{folder} cannot be deleted ({reason}): see whether it is locked, and try again."),
    mark("fits with {context} tokens of context ({size})"),
    mark("fits barely with {context} tokens of context ({size}): close other programs first"),
    mark("fits with up to {shorter} tokens of context, not {context}"),
    mark("needs {needed}, and models may use {available} here"),
    mark("Checking was stopped."),
    mark("{name} is being fetched: stop the download first."),
    mark("{name} is being fetched already: wait for it, or stop it there."),
    mark("The starter pair comes with the program and stays: choose another model to delete."),
    mark("{folder} is not one of Slipstream's folders: delete it where it was made."),
    mark("{folder} belongs to LM Studio: delete it there."),
    mark("This is not an access token: copy the whole of it, it begins with hf_."),
    mark("The keychain does not take the token: unlock it, or set HF_TOKEN instead."),
    # The server
    mark("Port {port} on {host} is in use: stop the other program, or choose another port with --port."),
    mark("Port {port} on {host} needs more rights: choose a port above 1023 with --port."),
    mark("Port {port} on {host} cannot be used ({reason}): choose another port with --port."),
    # Files and answers that are not what they should be
    mark("{name} is of the family {family}, which mlx-lm {version} does not know"),
    mark("choose a model of another family, such as llama, qwen3 or gemma3."),
    mark("{name} needs program code of its own ({file}), which is not run here"),
    mark("{name} has no {key} in its config.json"),
    mark("The weights of {name} are stored as {encoding}, in which models of the family {family} do not run here"),
    mark("8-bit floats (fp8)"),
    mark("choose an MLX conversion of the model, in 4 or 8 bits."),
    mark(
        "The weights in {folder} do not belong to its config.json ({reason}): download the model again, or choose another "
        "conversion."
    ),
    mark("{file} is not a JSON object: download the model again."),
    mark("{file}: {key} is {value}, expected {kind}: download the model again."),
    mark("The draft in {folder} has a tensor of the wrong shape ({shape}): download it again."),
    mark("{file} is not there: check the path of the GGUF file."),
    mark("{file} is not a complete GGUF file: download it again."),
    mark("{file} is a {family} model: only 'llama' GGUF files can be imported."),
    mark("{file} has a {kind} tokenizer: only byte-level BPE ('gpt2') can be imported."),
    mark("{file} has no {key}: it cannot be imported."),
    mark("{file} has a {key} of the wrong type: it cannot be imported."),
    mark("{file} has {name} in {kind}, which is not supported."),
    mark("{file} has no tensor for {name}: it is incomplete."),
    mark("{name} is being fetched now: stop it first."),
    mark("{name} is not on this machine: there is nothing to delete."),
    mark("Something else than {file} was sent ({sent} bytes instead of {size})"),
    mark("if this network has a login page, log in, then try again."),
    mark("The hub describes {name} in a way not understood"),
    mark("update Slipstream."),
    mark("The config.json of {name} cannot be read"),
    mark("choose another conversion of the model."),
    mark("{name} did not come from the hub: {action}"),
    mark("import or copy it again."),
)

# What the engine tells users of the command line to do, as the window says it.
IN_WINDOW = {
    "{name} is not on this machine: fetch it with `slipstream models add {again}`.": mark(
        "{name} is not on this computer: get it in the Models window."
    ),
    "Port {port} on {host} is in use: stop the other program, or choose another port with --port.": mark(
        "Port {port} is in use by another program: stop that, or choose another port."
    ),
    "Port {port} on {host} needs more rights: choose a port above 1023 with --port.": mark(
        "Port {port} needs more rights: choose one above 1023."
    ),
    "Port {port} on {host} cannot be used ({reason}): choose another port with --port.": mark(
        "Port {port} cannot be used ({reason}): choose another."
    ),
    "{name} has no draft to keep in {bits} bits: load it without draft_bits.": mark(
        "{name} has no draft to keep in {bits} bits: leave the draft as it is stored."
    ),
    "The draft in {folder} cannot be kept in {bits} bits: its rows of {sizes} values do not divide into groups of {group}. Load it "
    "without draft_bits.": mark(
        "The draft in {folder} cannot be kept in {bits} bits, its rows of {sizes} values do not divide into groups of {group}: "
        "leave it as it is stored."
    ),
    "The cache of {family} models cannot be kept in {bits} bits, only that of plain attention models can: load it without "
    "kv_bits.": mark(
        "Keys and values of {family} models cannot be kept in {bits} bits, only those of plain attention can: choose full ones."
    ),
    "The cache of {family} models cannot be kept in {bits} bits: its heads of size {sizes} do not divide into groups of {group}. "
    "Load it without kv_bits.": mark(
        "Keys and values of {family} models cannot be kept in {bits} bits, heads of size {sizes} do not divide into groups of "
        "{group}: choose full ones."
    ),
    "The cache of {family} models cannot be kept in {bits} bits: its attention reads it in its own way. Load it without "
    "kv_bits.": mark(
        "Keys and values of {family} models cannot be kept in {bits} bits, their attention reads them in its own way: choose full "
        "ones."
    ),
    "This model cannot read a prompt in part, its cache has no row for each token ({kinds}): leave sparse prefill off.": mark(
        "This model cannot read a prompt in part: choose “All of it” in the options of this chat."
    ),
    "This model's tokenizer does not say where its tokens stand in a text: leave sparse prefill off.": mark(
        "This model cannot read a prompt in part, its tokenizer does not say where tokens stand in a text: choose “All of it” in "
        "the options of this chat."
    ),
}
