"""The command line as scripts rely on it: fields, exit codes, one-line errors. Interrupts as a process of its own are elsewhere."""

from __future__ import annotations

import io
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from engine import cli
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.sampling_options import sampling_settings
from tests.engine.cli.contract import ANSWER_FIELDS, generate
from tests.engine.tiny import target_config, write_draft


def test_generate_prints_the_text_alone_on_stdout_and_figures_on_stderr(run, pair: str) -> None:
    text = json.loads(run(*generate(pair, "--json"))[1])["text"]
    code, out, err = run(*generate(pair))
    assert (code, out) == (0, text + "\n")
    assert re.fullmatch(r"12 tokens · [\d.]+ tokens/s · [\d.]+ tokens/cycle · \d+% accepted · .* · dflash · ended by length\n", err)


@pytest.mark.parametrize("mode", ["auto", "dflash", "baseline", "lookup"])
def test_generate_json_is_one_object_of_exactly_the_fields_scripts_know(run, pair: str, mode: str) -> None:
    code, out, err = run(*generate(pair, "--json", "--mode", mode))
    record = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert sorted(record) == sorted(["text", *ANSWER_FIELDS])
    assert record["mode"] == {"auto": "dflash"}.get(mode, mode)
    assert (record["finish_reason"], record["completion_tokens"], len(record["token_ids"])) == ("length", 12, 12)
    assert (record["fallback"], record["cached_tokens"]) == (None, 0)
    assert 0 <= record["parked_cycles"] <= (record["cycles"] if record["mode"] != "baseline" else 0)  # a random draft never pays
    assert record["ttft_s"] > 0 and record["decode_tok_s"] > 0 and record["prompt_tokens"] > 10
    assert record["tokens_per_cycle"] == pytest.approx(11 / record["cycles"])
    assert record["acceptance_rate"] == (pytest.approx(record["accepted"] / record["proposed"]) if record["proposed"] else None)


def test_every_mode_gives_the_same_text_greedy_and_sampled(run, pair: str) -> None:
    for settings in ((), ("--temperature", "0.8", "--seed", "7")):
        texts = {
            json.loads(run(*generate(pair, "--json", "--mode", mode, *settings))[1])["text"] for mode in ("baseline", "dflash")
        }
        assert len(texts) == 1


def test_the_seed_changes_the_text(run, pair: str) -> None:
    asked = [generate(pair, "--json", "--temperature", "1", "--seed", seed) for seed in ("1", "2", "1")]
    first, second, again = (json.loads(run(*arguments)[1])["token_ids"] for arguments in asked)
    assert first == again != second


SAMPLED = (
    *("--temperature", "0.9", "--seed", "3", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.01"),
    *("--repetition-penalty", "1.2", "--presence-penalty", "0.5", "--frequency-penalty", "0.3"),
)


def test_every_sampling_option_reaches_the_answer_and_is_kept_in_every_mode(run, pair: str) -> None:
    answers = [json.loads(run(*generate(pair, "--json", "--mode", mode, *SAMPLED))[1]) for mode in ("baseline", "dflash", "lookup")]
    assert answers[0]["token_ids"] == answers[1]["token_ids"] == answers[2]["token_ids"]
    assert sampling_settings(cli._parser().parse_args(generate(pair, *SAMPLED))) == {
        "temperature": 0.9, "top_k": 40, "top_p": 0.95, "min_p": 0.01, "logit_bias": {}, "logprobs": None,
        "repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.3,
    }  # fmt: skip
    first = answers[0]["token_ids"][0]
    banned, forced = (
        json.loads(run(*generate(pair, "--json", "--logit-bias", bias, "--logit-bias", "5=-1"))[1])["token_ids"]
        for bias in (f"{first}=-100", "77=100")
    )
    assert first not in banned and set(forced) == {77}


def test_logprobs_are_in_the_json_only_where_asked_for(run, pair: str) -> None:
    record = json.loads(run(*generate(pair, "--json", "--logprobs", "2"))[1])
    assert [entry["token_id"] for entry in record["logprobs"]] == record["token_ids"]
    for entry in record["logprobs"]:
        assert entry["top"][0] == {"token_id": entry["token_id"], "logprob": entry["logprob"]}, "greedy: the token is the likeliest"
        assert 0 > entry["top"][0]["logprob"] >= entry["top"][1]["logprob"] and len(entry["top"]) == 2


def test_an_answer_satisfies_the_schema_in_a_file_and_a_bad_one_is_told(run, pair: str, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "array", "items": {"enum": ["ä", 7]}, "minItems": 2, "maxItems": 2}', encoding="utf-8")
    code, out, _ = run(*generate(pair, "--json-schema", str(file)))
    assert code == 0 and len(found := json.loads(out)) == 2 and set(found) <= {"ä", 7}
    for text, words in (("[", "the schema is not JSON"), ('{"not": {}}', "--json-schema cannot be honoured")):
        file.write_text(text, encoding="utf-8")
        code, out, err = run(*generate(pair, "--json-schema", str(file)))
        assert (code, out) == (2, "") and words in err and err.count("\n") == 1
    assert run(*generate(pair, "--json-schema", str(tmp_path)))[0] == 2


def test_a_target_alone_looks_up_and_says_why_it_does_not_draft(run, pair: str) -> None:
    target = pair.split("+")[0]
    code, out, _ = run(*generate(target, "--json", "--mode", "dflash"))
    assert code == 0 and json.loads(out)["mode"] == "lookup"
    assert json.loads(out)["fallback"] == "Lookup drafting: this model has no draft."
    _, _, err = run(*generate(target))
    assert err.startswith("slipstream: Lookup drafting: this model has no draft.\n")


class Input(io.TextIOWrapper):
    """Standard input with these bytes."""

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data), encoding="ascii")


def test_a_prompt_from_standard_input_is_the_same_prompt(run, pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input("Hello 虹".encode()))
    piped = run("generate", "--model", pair, "--prompt", "-", "--max-tokens", "12", "--json")
    assert piped[0] == 0
    assert json.loads(piped[1])["token_ids"] == json.loads(run(*generate(pair, "--json"))[1])["token_ids"]


def test_bytes_on_standard_input_that_are_no_text_do_no_harm(run, pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"caf\xe9 \xff\x00"))
    assert run("generate", "--model", pair, "--prompt", "-", "--max-tokens", "2", "--json")[0] == 0


def test_lone_surrogates_from_a_terminal_do_no_harm(run, pair: str) -> None:
    assert run("generate", "--model", pair, "--prompt", "caf\udce9", "--max-tokens", "2", "--json")[0] == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--prompt", ""), "The prompt is empty"),
        (("--prompt", " \n"), "The prompt is empty"),
        (("--max-tokens", "0"), "max_tokens is 0"),
        (("--max-tokens", "x"), "argument --max-tokens"),
        (("--temperature", "9"), "temperature is 9.0"),
        (("--temperature", "nan"), "temperature is nan"),
        (("--mode", "magic"), "argument --mode"),
        (("--top-p", "0"), "top_p is 0.0: choose a value above 0 to 1."),
        (("--top-k", "1.5"), "argument --top-k"),
        (("--min-p", "2"), "min_p is 2.0: choose a value from 0 to 1."),
        (("--repetition-penalty", "inf"), "repetition_penalty is inf"),
        (("--presence-penalty", "3"), "presence_penalty is 3.0"),
        (("--frequency-penalty", "-3"), "frequency_penalty is -3.0"),
        (("--logit-bias", "7"), "'7' is not ID=VALUE"),
        (("--logit-bias", "7=101"), "logit_bias 7=101.0 cannot be used"),
        (("--logit-bias", "49152=1"), "logit_bias names token 49152 and the model's last one is 49151"),
        (("--json", "--logprobs", "21"), "logprobs is 21"),
        (("--logprobs", "2"), "add --json"),
        (("--logit-bias", "7=1", "--logit-bias", "7=2"), "names a token twice"),
        (("--sparse-scorer", "stride"), "give both"),
        (("--sparse-prefill", "0.5", "--kv-bits", "8"), "cannot be read in part"),
        (("--mode", "lookup", "--draft-bits", "4"), "does not use the draft"),
        (("--nonsense",), "unrecognized arguments: --nonsense"),
        (("--prompt", "word " * 600), "the model's context holds 512"),
    ],
)
def test_a_wrong_request_is_code_2_and_one_line(run, pair: str, more: tuple[str, ...], words: str) -> None:
    code, out, err = run(*generate(pair, *more))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("slipstream: ") and words in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("sing",),
        ("generate",),
        ("generate", "--model", "starter"),
        ("generate", "--prompt", "x"),
        ("bench", "--model", "starter"),
        ("bench", "--model", "starter", "--json", "x", "--repeat", "0"),
        ("bench", "--model", "starter", "--json", "x", "--max-tokens", "many"),
        ("models",),
        ("models", "sing"),
        ("models", "add", "nothing"),
    ],
)
def test_a_wrong_command_is_code_2_and_one_line(run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("slipstream: ") and "_positive" not in err


def test_a_name_that_means_no_model_is_code_2_and_one_line(run) -> None:
    code, out, err = run(*generate("no/where/at/all"))
    assert (code, out) == (2, "")
    assert err == "slipstream: no/where/at/all is neither a model folder nor a hub id: check the path.\n"


def test_a_model_that_was_not_fetched_is_code_1_and_names_the_command(run) -> None:
    code, out, err = run(*generate("org/model"))
    assert (code, out) == (1, "")
    assert err == "slipstream: org/model is not on this machine: fetch it with `slipstream models add org/model`.\n"


def test_a_draft_for_another_target_is_code_1_and_one_line(run, pair: str, tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", target_config())
    code, out, err = run(*generate(f"{pair.split('+')[0]}+{draft}"))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "belongs to another target (vocabulary 160 against 49,152)" in err


@pytest.mark.parametrize("arguments", [("--debug", *generate("nowhere")), (*generate("nowhere"), "--debug")])
def test_debug_shows_where_an_error_came_from_before_or_after_the_verb(run, arguments: tuple[str, ...]) -> None:
    code, _, err = run(*arguments)
    assert code == 2 and "Traceback" in err
    assert err.endswith("\nslipstream: nowhere is neither a model folder nor a hub id: check the path.\n")


def test_debug_keeps_the_exit_code_of_a_wrong_request(run) -> None:
    assert run("--debug", *generate("nowhere", "--max-tokens", "0"))[0] == 2


def test_an_error_nobody_foresaw_is_one_line_that_says_so(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Engine:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(cli, "load", broken)
    code, _, err = run(*generate("starter"))
    assert (code, err) == (1, "slipstream: RuntimeError: two lines (run again with --debug and report this)\n")


def test_ctrl_c_where_nothing_can_be_kept_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Input):
        @property
        def buffer(self) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted(b""))
    code, _, err = run("generate", "--model", "starter", "--prompt", "-")
    assert (code, err) == (1, "slipstream: Stopped: run the command again to start over.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interrupt_asks_and_the_second_ends_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with cli._cancel_on_interrupt() as cancel:
        signal.raise_signal(number)
        assert cancel.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_models_list_names_the_starter_pair_and_its_state(run, starter: ResolvedPair) -> None:
    code, out, err = run("models", "list")
    assert (code, err) == (0, "")
    assert re.search(r"^starter +ready +1\d\d MB  Starter \(SmolLM2 135M\): ", out, re.MULTILINE)


def test_models_add_and_verify_find_the_starter_pair_whole(run, starter: ResolvedPair) -> None:
    assert run("models", "add", "starter") == (0, f"starter is ready in {starter.target}\n", "")
    assert run("models", "verify") == (0, "starter: every file is as it was set up\n", "")


def test_import_gguf_of_something_else_is_code_1_and_one_line(run, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"not a model")
    code, out, err = run("models", "import-gguf", str(tmp_path / "x.gguf"), str(tmp_path / "folder"))
    assert (code, out, err.count("\n")) == (1, "", 1) and "report this" not in err
    assert not (tmp_path / "folder").exists()


def test_the_demo_compares_both_modes_on_three_prompts(pair: str) -> None:
    out = io.StringIO()
    assert cli.demo(pair, out) == 0
    lines = out.getvalue().splitlines()
    assert len(lines) == 7 and max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines[2:5]] == ["code", "list", "prose"]
    assert all("identical, 96 tokens" in line for line in lines[2:5])
    assert lines[5].startswith("Median: ") and lines[6] == "3 of 3 texts identical."


def test_version_and_help_are_code_0(run) -> None:
    assert run("--version")[:2] == (0, f"slipstream {cli.__version__}\n")
    code, out, _ = run("generate", "--help")
    assert code == 0 and all(option in out for option in ("--mode", "--seed", "--temperature", "--max-tokens", "--json", "--debug"))
