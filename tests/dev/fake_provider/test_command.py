"""Facts of `geode dev fake-provider`: what it prints can be used as it stands, and Ctrl-C ends it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from geode.dev.fake_provider.console import request_line
from geode.dev.fake_provider.log import RecordedRequest

COMMAND = (sys.executable, "-c", "from geode.cli import main; main()", "dev", "fake-provider")


@pytest.mark.slow
def test_it_prints_what_to_export_and_a_line_for_each_request(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("then: {text: hello}")
    command = [*COMMAND, "--script", str(script), "--latency-ms", "1"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        values: dict[str, str] = {}
        for line in process.stdout:
            values |= dict(re.findall(r"([A-Z_]+)=(\S+)", line))
            if "Ctrl-C" in line:
                break
        assert {name.partition("_")[0] for name in values} == {"ANTHROPIC", "OPENAI", "OPENROUTER", "ZAI", "TYPESAFE"}
        assert values["OPENAI_CODEX_TOKEN"] != values["OPENAI_API_KEY"]
        assert len(values) == 11
        reply = httpx.post(
            values["ZAI_BASE_URL"] + "/chat/completions",
            json={"model": "glm-5.3", "messages": [{"role": "user", "content": "hi"}]},
            headers={"authorization": f"Bearer {values['ZAI_API_KEY']}"},
            trust_env=False,
            verify=False,
        )
        assert reply.json()["choices"][0]["message"]["content"] == "hello"
        assert process.stdout.readline().startswith("200  POST  /zai/api/paas/v4/chat/completions  glm-5.3  whole")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.slow
def test_a_script_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("steps: [{txt: hi}]")
    done = subprocess.run([*COMMAND, "--script", str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "steps.0.txt" in done.stderr


def test_a_line_shows_the_error_and_no_control_character() -> None:
    request = RecordedRequest(
        route=None,
        method="POST",
        path="/x\x1b[2J",
        headers={},
        raw=b"12345",
        body={"model": "m\n", "stream": True},
        attempt=2,
        status=400,
        error='{"error": {"message": "No."}}',
    )
    line = request_line(request)
    assert line == "400  POST  /x\\u001b[2J  m\\n  stream  5 bytes  attempt 2  No."
