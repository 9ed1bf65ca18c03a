"""Every panel over a record: the same values as over the run, and nothing that a file says breaks the page."""

import dataclasses
import gzip
import json
import random
from typing import Any

from components.checks import checks
from components.copy import words
from components.desk import Desk
from components.panels import PANELS
from components.visit import Visit
from engine.catalog import load_catalog
from engine.experiment import ExperimentError
from engine.record import record_from_bytes
from engine.runtime import Runtime
from engine.settings import Settings
from tests.components.pages import page_over
from tests.components.replays import experiment, finished, ready, replaying, saved
from tests.engine.records import contents
from tests.engine.test_record import mutated

#: Probes behind buttons, but those that run something beside the trace.
BUTTONS = [name for panel in PANELS for name in panel.CONTROLS.asks if name not in
           ("without_template", "take_branch", "chances")]  # fmt: skip


def drawn(desk: Desk, visit: Visit) -> dict[str, Any]:
    """What every panel shows, and the status line below them."""
    shown: dict[str, Any] = {}
    for panel in PANELS:
        view = desk.view(visit)
        reason = panel.unavailable(view)
        shown[panel.STATION] = reason or json.loads(json.dumps(panel.render(view)))
        shown[f"{panel.STATION} stations"] = [dataclasses.astuple(one) for one in panel.stations(view)]
    shown["checks"] = [dataclasses.astuple(one) for one in checks(desk.view(visit))]
    return shown


def test_every_panel_shows_of_a_record_what_it_shows_of_the_run(embedded):
    runtime = Runtime(embedded, load_catalog(), Settings())
    desk = Desk(ready(runtime), experiment(embedded.facts.model_id, stop={"max_new_tokens": 3}))
    visit = finished(desk)
    for name in BUTTONS:
        desk.ask(visit, name)
        assert visit.notice == "", name
    places = [{"position": None, "layer": 3, "head": 2}, {"position": 9, "layer": 0, "head": 0}]
    pictures = []
    for place in places:
        visit.cursor = dataclasses.replace(visit.cursor, **place)
        pictures.append(drawn(desk, visit))
    record = saved(desk, visit)
    runtime.shut_down()
    kept = {one.probe for one in record.answers}
    assert kept >= {"lens", "attention", "residual", "embedding", "layer", "feed_forward", "model", "merges", "padding"}
    other, page = replaying(record)
    for name in BUTTONS:
        other.ask(page, name)
        assert page.notice == "", name
    for place, picture in zip(places, pictures, strict=True):
        page.cursor = dataclasses.replace(page.cursor, **place)
        again = drawn(other, page)
        rows = picture["lens"][3]  # of a run a guess can be followed, which may ask the model anew
        offer = f" {words('lens').text('rows_follow')}"
        assert rows["keys"]
        assert rows["caption"].endswith(offer)
        picture["lens"][3] = rows | {"keys": None, "caption": rows["caption"].removesuffix(offer)}
        for name in picture:
            assert again[name] == picture[name], name


def test_a_damaged_record_never_takes_the_page_with_it(live):
    """Whatever a file says that is still a record: the page shows it, or closes it and says so."""
    visit = finished(live)
    text = json.dumps(contents(saved(live, visit, "0")))
    page = page_over(live)
    chance, shown = random.Random(1), 0
    for _ in range(150):
        changed = json.dumps(mutated(json.loads(text), chance)).encode()
        try:
            record = record_from_bytes(gzip.compress(changed, 1))
        except ExperimentError:
            continue
        for panel in PANELS:
            live.play(visit, record)
            visit.station = next(one.id for one in panel.stations(live.view(visit)))
            json.dumps(page.frame(visit))
            shown += 1
    assert shown > 100
