"""jundot/omlx#2486, jjang-ai/mlxstudio#5: "App is damaged", because the ticket was not stapled to what people downloaded."""

from __future__ import annotations

from pathlib import Path

import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "release.yml"


def test_with_a_certificate_a_release_fails_unless_its_ticket_is_stapled_and_the_system_takes_it() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    scripts = [(name, step["run"]) for name, job in jobs.items() for step in job["steps"] if "run" in step]
    checks = [place for place, (_, script) in enumerate(scripts) if "stapler validate" in script]
    assert len(checks) == 1
    name, script = scripts[checks[0]]
    assert "|| true" not in script and script.count("spctl --assess") == 2
    published = [place for place, (_, text) in enumerate(scripts) if "gh release" in text]
    assert published and all(place > checks[0] for place in published)
    assert all(name in _needs(jobs, scripts[place][0]) | {scripts[place][0]} for place in published)


def _needs(jobs: dict, name: str) -> set[str]:
    """The jobs that must have succeeded before ``name``."""
    needs = jobs[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(_needs(jobs, other) for other in direct)) if direct else direct
