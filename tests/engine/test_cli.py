"""The command line as scripts rely on it: fields, exit codes, one-line errors. Interrupts are in test_cli_interrupts.py."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import cli, draft_check
from engine.decoding import exactness
from engine.decoding.exactness import probing
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.models.paths import cache_folder
from engine.sampling_options import sampling_settings
from engine.targets.protocol import Target
from tests.engine.bench.pairs import write_pair
from tests.engine.tiny import target_config, write_draft

# The contract of the command line; a script written for one version must run with the next.
ANSWER_FIELDS = [
    "token_ids", "mode", "finish_reason", "prompt_tokens", "cached_tokens", "cache", "completion_tokens", "ttft_s",
    "decode_tok_s", "cycles", "proposed", "accepted", "tokens_per_cycle", "acceptance_rate", "draft_s", "verify_s",
    "parked_cycles", "fallback", "approximate", "kept_tokens", "dropped_messages", "dropped_tokens", "context_full",
    "lookup_proposed", "lookup_accepted",
]  # fmt: skip
RUN_FIELDS = [
    "id", "mode", "completion_tokens", "baseline", "dflash", "speedup", "identical", "identity_reason", "first_divergence",
    "limit_tok_s",
    "efficiency",
]  # fmt: skip


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> str:
    """TARGET+DRAFT of a tiny random pair, loaded anew by each command as a user's would be."""
    return write_pair(tmp_path_factory.mktemp("pair"), starter)


@pytest.fixture(autouse=True)
def no_word_on_the_random_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it cannot guess is told in ``test_draft_check``; here stderr holds what the commands say themselves."""
    monkeypatch.setattr(draft_check, "IMPLAUSIBLE", 0.0)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Runs a command in this process: its exit code, stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(arguments)
        except SystemExit as leaving:  # argparse's way out
            assert isinstance(leaving.code, int)
            code = leaving.code
        return code, *capsys.readouterr()

    return command


def generate(pair: str, *more: str) -> tuple[str, ...]:
    return ("generate", "--model", pair, "--prompt", "Hello 虹", "--max-tokens", "12", *more)


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


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    lines = [{"id": "one", "prompt": "Count."}, {"id": "two \ud800", "messages": [{"role": "user", "content": "虹?"}]}]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return file


def test_bench_writes_environment_runs_and_summary(run, pair: str, prompts: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    code, out, err = run("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "24", "--json", str(target))
    assert (code, out) == (0, "")
    report = json.loads(target.read_text(encoding="utf-8"))
    assert list(report) == ["environment", "runs", "summary"]
    assert [run["id"] for run in report["runs"]] == ["one", "two \ud800"], "a lone surrogate is written as JSON's escape"
    for result in report["runs"]:
        assert sorted(result) == sorted(RUN_FIELDS)
        assert sorted(result["baseline"]) == sorted(result["dflash"]) == sorted(ANSWER_FIELDS)
        assert (result["identical"], result["first_divergence"], result["completion_tokens"]) == (True, None, 24)
        assert result["limit_tok_s"] > 0 and result["efficiency"] > 0
    summary = report["summary"]
    assert {"speedup", "slowest_speedup", "identical_runs", "limit_tok_s", "efficiency", "completion_tokens"} <= summary.keys()
    assert summary["identical_runs"] == summary["runs"] == 2
    assert summary["slowest_speedup"] == min(result["speedup"] for result in report["runs"])
    assert report["environment"]["pair"] == pair
    assert err.count("identical, 24 tokens") == 2 and "2 of 2 texts identical" in err


def exact_commands(pair: str, prompts: Path, report: Path) -> dict[str, tuple[str, ...]]:
    return {
        "generate": generate(pair, "--exact"),
        "bench": ("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "4", "--exact", "--json", str(report)),
        "serve": ("serve", "--model", pair, "--port", "0", "--exact"),
    }


@pytest.fixture
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize("verb", ["generate", pytest.param("bench", marks=pytest.mark.slow)])
def test_a_terminal_shows_how_far_measuring_exact_block_lengths_is(
    run, pair: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = run(*exact_commands(pair, prompts, tmp_path / "out.json")[verb])
    shares = [int(found) for found in re.findall(r"Measuring which block lengths are exact here, once (\d+)%", err)]
    assert code == 0 and len(shares) > 20 and shares == sorted(shares), err


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize("verb", ["generate", *(pytest.param(verb, marks=pytest.mark.slow) for verb in ("bench", "serve"))])
def test_ctrl_c_stops_measuring_exact_block_lengths_and_nothing_of_it_is_kept(
    run, pair: str, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    passes = []

    def interrupted(target: Target, widest: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        for share, left in probing(target, widest):
            passes.append(share)
            if len(passes) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield share, left

    monkeypatch.setattr(exactness, "probing", interrupted)
    code, out, err = run(*exact_commands(pair, prompts, tmp_path / "out.json")[verb])
    assert (code, out.strip(), len(passes)) == (1, "", 3) and "Traceback" not in err
    assert "ended by cancelled" in err if verb == "generate" else "was stopped" in err
    assert not (tmp_path / "out.json").exists() and not list((cache_folder() / "costs").glob("exact-widths*"))


@pytest.mark.parametrize("place", ["missing/out.json", "."])
def test_bench_refuses_a_report_it_cannot_write_before_it_loads_anything(run, prompts: Path, tmp_path: Path, place: str) -> None:
    code, out, err = run("bench", "--model", "nowhere", "--prompts", str(prompts), "--json", str(tmp_path / place))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written" in err and "give another file" in err


def test_bench_leaves_no_empty_report_and_no_harm_to_an_old_one_when_it_fails(run, prompts: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("measured yesterday")
    for file in (old, new):
        assert run("bench", "--model", "nowhere", "--prompts", str(prompts), "--json", str(file))[0] == 2
    assert old.read_text() == "measured yesterday" and not new.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_report_that_cannot_be_written_after_all_goes_to_stdout(run, pair: str, prompts: Path) -> None:
    code, out, err = run("bench", "--model", pair, "--prompts", str(prompts), "--max-tokens", "4", "--json", "/dev/full")
    assert code == 1 and err.splitlines()[-1].startswith("slipstream: /dev/full cannot be written (No space left")
    assert len(json.loads(out)["runs"]) == 2


def test_bench_without_a_draft_is_code_2(run, pair: str, prompts: Path, tmp_path: Path) -> None:
    code, _, err = run("bench", "--model", pair.split("+")[0], "--prompts", str(prompts), "--json", str(tmp_path / "x"))
    assert code == 2 and "has no draft to compare with" in err.splitlines()[-1]


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
