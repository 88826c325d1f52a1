"""How many tokens a cycle commits where an answer has to satisfy a schema, with and without proposing what the schema forces.

Counts on the starter pair, with the same priced passes on every machine: python -m tests.perf.forms
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from engine import Finished, GenerationRequest, LoadOptions, json_schema, load
from engine.decoding.constraint import Guide
from engine.decoding.odds import LookupOdds
from engine.engine import Engine
from tests.engine.decoding.forms import closed
from tests.engine.quick_loads import COSTS
from tests.perf.controller_priced import PricedController


def text(length: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": length}


ADDRESS = closed({"street": text(30), "city": text(20), "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"}})
EMPLOYER = closed({"company_name": text(20), "number_of_employees": {"type": "integer", "minimum": 1, "maximum": 9999}})
AMOUNT = {"type": "number", "minimum": 0, "maximum": 999}
INGREDIENT = closed({"ingredient": text(20), "quantity": AMOUNT, "unit": {"enum": ["gram", "litre", "piece"]}})
PERSON = closed({
    "full_name": text(30), "date_of_birth": {"type": "string", "format": "date"}, "is_married": {"type": "boolean"},
    "favourite_colour": {"enum": ["red", "green", "blue"]},
})  # fmt: skip
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("flat", "Describe a person as JSON.", PERSON),
    ("nested", "Describe where somebody lives and works as JSON.", closed({"address": ADDRESS, "employer": EMPLOYER})),
    ("list", "List the ingredients of a pancake as JSON.", {"type": "array", "items": INGREDIENT, "minItems": 3, "maxItems": 3}),
]


def answer(engine: Engine, prompt: str, schema: dict[str, Any], mode: Any) -> Finished:
    odds = LookupOdds()  # each answer begins with what a fresh engine knows
    engine._controllers = {
        kind: PricedController(COSTS, max(known._all_lengths, default=1), odds) for kind, known in engine._controllers.items()
    }
    asked = GenerationRequest.of(prompt, mode=mode, max_tokens=200, constraint=json_schema(schema), use_cache=False)
    *_, finished = engine.generate(asked)
    assert isinstance(finished, Finished)
    return finished


def main() -> None:
    engine = load("starter", options=LoadOptions(prefix_disk_bytes=0))
    for name, prompt, schema in CASES:
        for mode in ("dflash", "lookup"):
            forced = answer(engine, prompt, schema, mode)
            with patch.object(Guide, "_forced", lambda _guide: []):
                free = answer(engine, prompt, schema, mode)
            assert forced.token_ids == free.token_ids, "what is proposed changes no token"
            rates = [(len(one.token_ids) - 1) / one.statistics.cycles for one in (forced, free)]
            print(f"{name:8}{mode:8}{len(forced.token_ids):4} tokens, a cycle {rates[0]:.2f} with and {rates[1]:.2f} without")
    engine.close()


if __name__ == "__main__":
    main()
