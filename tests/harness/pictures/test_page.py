"""Pages of pictures: whole without a network, drawn by a real browser, sent to MLflow."""

from __future__ import annotations

import builtins
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from cases.errors import InputError
from harness.cli import cli
from harness.pictures.page import PICTURES, write_page, write_pictures, write_tables

pytest.importorskip("plotly", reason="plotly is not installed (pip install 'evalharness[plots]')")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BROWSER_LIMIT_S = 120


class Links(HTMLParser):
    """Collects what a page would load, and the ids of its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag in ("script", "img", "iframe", "link") and (found.get("src") or found.get("href")):
            self.loads.append(str(found.get("src") or found.get("href")))


@pytest.fixture(scope="module")
def page(judged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page"), "mine on <tiny>", judged)


def test_page_loads_nothing_and_holds_every_picture(page: Path) -> None:
    text = page.read_text()
    links = Links()
    links.feed(text)
    assert links.loads == []
    assert "<title>mine on &lt;tiny&gt;</title>" in text
    for name in PICTURES:
        assert name in links.ids
        assert f"picture-{name}" in links.ids
        assert f'<a href="{name}.csv">' in text
    assert text.count("plotly.js v") <= 2  # its code stands there once


def test_data_of_each_picture_lies_beside_it(page: Path) -> None:
    for name in PICTURES:
        assert len(pd.read_csv(page.parent / f"{name}.csv")), name
    found = pd.read_csv(page.parent / "confusion.csv")
    assert found.set_index(["true", "blamed"])["count"]["healthy", "(quiet)"] == 4


@pytest.mark.skipif(CHROMIUM is None, reason="no browser (apt-get install chromium)")
def test_a_browser_draws_every_picture(page: Path) -> None:
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    errors = ["--enable-logging=stderr", "--log-level=0"]
    done = subprocess.run(
        [CHROMIUM, *flags, profile, *errors, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=BROWSER_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not [line for line in console if "Error" in line], console
    for name in PICTURES:
        drawn = done.stdout.partition(f'id="picture-{name}"')[2].partition("</section>")[0]
        assert 'class="main-svg"' in drawn, name
    heatmap = done.stdout.partition('id="picture-confusion"')[2].partition("</section>")[0]
    assert "dataloader_cpu_bound" in heatmap
    bars = done.stdout.partition('id="picture-ablation"')[2].partition("</section>")[0]
    assert bars.count('class="point"') == 2


def test_report_of_one_and_of_several(judged: Path, tmp_path: Path) -> None:
    one = CliRunner().invoke(cli, ["report", str(judged), "--html", str(tmp_path / "one")])
    assert one.exit_code == 0, one.output
    assert one.stdout.strip() == str(tmp_path / "one" / "index.html")
    both = tmp_path / "results" / "tiny"
    for name in ("first", "second"):
        shutil.copytree(judged, both / name)
        text = (both / name / "summary.json").read_text().replace('"mine"', f'"{name}"')
        (both / name / "summary.json").write_text(text)
    several = CliRunner().invoke(cli, ["report", str(both), "--html", str(tmp_path / "all")])
    assert several.stdout.split() == [
        str(tmp_path / "all" / "tiny" / name / "index.html") for name in ("first", "second")
    ]


def test_without_plotly_the_extra_is_named_and_data_are_written(
    judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("plotly"):
            raise ModuleNotFoundError("No module named 'plotly'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InputError, match=r"pip install 'evalharness\[plots\]'"):
        write_page(tmp_path, "mine", judged)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    write_pictures(tmp_path, "mine", judged)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(PICTURES)


def test_who_found_nothing_is_drawn_all_the_same(judged: Path, tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    shutil.copytree(judged, silent)
    for name in ("faults", "findings"):
        table = pd.read_parquet(silent / f"{name}.parquet")
        table.iloc[:0].to_parquet(silent / f"{name}.parquet", index=False)
    assert write_page(tmp_path / "page", "silent", silent).is_file()
    assert write_tables(tmp_path / "page", silent)["reliability"].empty


def test_pictures_go_to_mlflow(judged: Path, own_store: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="pip install 'evalharness[track]'")
    from harness.tracking import track_results

    sent = track_results(judged)
    client = mlflow.MlflowClient(tracking_uri=sent.uri)
    found = {Path(file.path).name for file in client.list_artifacts(sent.run_id, "pictures")}
    assert found == {"index.html", *(f"{name}.csv" for name in PICTURES)}
