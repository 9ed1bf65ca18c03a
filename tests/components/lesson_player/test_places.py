from components.lesson_player.places import NOT_PRESSED, PANEL_OF, buttons, parts, station_of
from components.panels import PANELS
from tests.components.handmade import make_view


def test_every_name_of_a_panel_and_of_a_station_leads_to_a_station_of_that_panel():
    view = make_view()
    stations = {station.id: panel for panel in PANELS for station in panel.stations(view)}
    assert set(PANEL_OF) == {panel.STATION for panel in PANELS} | set(stations)
    for name, panel in PANEL_OF.items():
        assert stations[station_of(name)] is panel
    assert {name: station_of(name) for name in stations} == {name: name for name in stations}


def test_a_panel_with_several_stations_opens_the_first():
    assert [station_of(name) for name in ("sampling", "stopping", "residual", "lens")] == [
        *("logits", "stop", "layers", "lens")
    ]


def test_buttons_that_begin_another_run_cannot_be_pressed():
    assert buttons(PANEL_OF["lens"]) == ("lens_map",)
    assert buttons(PANEL_OF["prompt"]) == ()
    every = {name for panel in PANELS for name in panel.CONTROLS.asks}
    assert every >= NOT_PRESSED


def test_the_parts_of_a_panel_are_its_widgets_from_the_top_under_each_of_its_names():
    known = parts()
    assert known["context"] == ["context-notes", "context-history", "context-policies"]
    assert known["prompt"] == ["prompt-strip", "prompt-parts", "prompt-compare"]  # and a fold
    assert known["logits"] == known["draw"] == known["sampling"]
    assert {name for name, ids in known.items() if not ids} == set()
