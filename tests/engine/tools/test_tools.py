"""The tools themselves: right values, worked out by hand or by their definition, and bounds that hold quickly."""

import time
from fractions import Fraction

import jsonschema
import pytest

from engine.experiment import ExperimentError, parse_experiment
from engine.tools.calculator import calculate, number_text
from engine.tools.elements import table
from engine.tools.registry import TOOLS, tools_named
from engine.tools.tool import Setting, ToolError
from engine.tools.units import FACTORS, TEMPERATURES, convert

SETTING = Setting("2026-01-01T12:00:00+02:00")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("23 * 19", "437"),
        ("2 + 3 ^ 2", "11"),
        ("(1 + 2) × 4 ÷ 3", "4"),
        ("7 // 2 - -1", "4"),
        ("-7 % 3", "2"),
        ("2 ** 0.5", "1.41421356237"),
        ("sqrt(2) * sqrt(2)", "2"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("1 / 3", "0.333333333333"),
        ("pi", "3.14159265359"),
        ("round(2.567)", "3"),
        ("round(2.567, 1)", "2.6"),
        ("round(1267, -2)", "1300"),
        ("round(5, -300)", "0"),
        ("round(5, 400)", "5"),
        ("10 ** 300", "1" + "0" * 300),
        ("3 ** 600 - 3 ** 600 + 1", "1"),
        ("1.0001 ** 5000", "1.64868005593"),
        ("1 ** 10 ** 300", "1"),
        ("(-1) ** (10 ** 300 + 1)", "-1"),
        ("0 ** 10 ** 300", "0"),
    ],
)
def test_arithmetic(expression: str, value: str) -> None:
    assert number_text(calculate(expression)) == value


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9", "9**9**9**9", "9^9^9", "2**1024", "(2**500)**3", "(2**1000) * (2**1000)", "2**-(10**9)", "1e308*10",
        "9" * 2_000, "'a' * 10**9", "'ab' + 'cd'", "'%s' % 1", "[1] * 10**9", "(1,) * 10", "1 << 10**9", "~1",
        "(" * 99 + "1" + ")" * 99 + "+", "-" * 199 + "x", "(" * 5_000, "1/0", "0**-1", "(-8)**0.5", "sqrt(-1)",
        "log(0)", "exp(1000)", "abs", "abs()", "abs('a')", "__import__('os')", "().__class__", "x", "1 if True else 2",
        "True + True", "lambda: 1", "", " ", "1 +", "\x00", "a = 1", "import os", "f'{1}'", "1; 2", "1\n2", "1 < 2",
        "10 ** 10 ** 10 ** 10", "abs(*[1])", "nan", "inf", "1e999", "1j * 1j", "9 % 1e-400", "…", "print(1)",
        "max(range(10**9))", "round(1.5, 'x')", "sqrt(x=2)",
        "round(5, -8 * 10**5)", "round(5, -400)", "round(5, -10**300)", "round(1, 2, 3)", "round()",
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_refused_quickly(expression: str) -> None:
    started = time.thread_time()
    with pytest.raises(ToolError):
        calculate(expression)
    assert time.thread_time() - started < 0.5


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ("2 ** 1023", "2 ** 1024"),
        ("(-2) ** 1023", "(-2) ** 1024"),
        ("10 ** 308", "10 ** 309"),
        ("3 ** 646", "3 ** 647"),
        ("(2 ** 512 - 1) ** 2", "(2 ** 512) ** 2"),
        ("2 ** 512 * 2 ** 511", "2 ** 512 * 2 ** 512"),
        ("2 ** 1023 + (2 ** 1023 - 1)", "2 ** 1023 + 2 ** 1023"),
        ("2.0 ** 1023.9", "2.0 ** 1024"),
        ("1 ** (2 ** 1023 + (2 ** 1023 - 1))", "2 ** (2 ** 1023 + (2 ** 1023 - 1))"),
    ],
)
def test_a_number_is_refused_for_its_bits_only_where_it_has_them(most: str, more: str) -> None:
    assert abs(calculate(most)) == abs(eval(most)) < 2**1024
    with pytest.raises(ToolError, match="more than 1,024 bits"):
        calculate(more)


@pytest.mark.parametrize(
    "expression",
    [
        *("0.9 ** 10000", "2 ** -(10 ** 9)", "(10 ** 300) ** -(10 ** 300)"),
        *("1e-200 * 1e-200", "1e-200 / 1e200", "exp(-1000)"),
    ],
)
def test_what_a_float_rounds_to_nothing_is_not_given_as_0(expression: str) -> None:
    with pytest.raises(ToolError, match="too close to 0"):
        calculate(expression)


@pytest.mark.parametrize("expression", ["0 * 1e-200", "0 / 5", "0 ** 3", "0.0 * 5", "1e-300 * 0", "7 % 7", "3 // 5"])
def test_a_true_0_is_given(expression: str) -> None:
    assert calculate(expression) == 0


@pytest.mark.parametrize(
    "said",
    [
        "23 * 19 = 437", "10 ** 16 + 1 = 10000000000000001", "5 / 2 = 2.5", "0.5 * 4 = 2", "-1e3 / 8 = -125",
        "1 / 3 ≈ 0.333333333333", "0.1 + 0.2 ≈ 0.3", "1e16 + 1 ≈ 1e+16", "sqrt(2) * sqrt(2) ≈ 2",
        "123456789.123456789 ≈ 123456789.123",
    ],
)  # fmt: skip
def test_a_result_that_was_rounded_is_not_said_to_be_equal(said: str) -> None:
    expression, _, _ = said.rpartition(" ≈ " if "≈" in said else " = ")
    assert TOOLS["calculator"].run({"expression": expression}, SETTING) == said


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("abs()", "abs takes 1 number, got 0"),
        ("sqrt(1, 2)", "sqrt takes 1 number, got 2"),
        ("round()", "round takes 1 to 2 numbers, got 0"),
        ("log(1, 2, 3)", "log takes 1 to 2 numbers, got 3"),
        ("2(3 + 4)", "a * is missing before a parenthesis"),
        ("(1 + 2)(3)", "a * is missing before a parenthesis"),
        ("pi(2)", "unknown function 'pi'; there are: abs, ceil, exp, floor, log, log10, round, sqrt"),
        ("sin(1)", "unknown function 'sin'; there are: abs, ceil, exp, floor, log, log10, round, sqrt"),
        ("x + 1", "unknown number 'x'; there are: e, pi"),
        ("abs", "unknown number 'abs'; there are: e, pi"),
        ("sqrt(-1)", "sqrt is not defined for -1"),
        ("log(0)", "log is not defined for 0"),
        ("log(2, 1)", "division by zero"),
        ("round(1.5, 0.5)", "round is not defined for 1.5, 0.5"),
        ("exp(1000)", "a number on the way to the result would have more than 1,024 bits"),
        ("abs(", "not an expression of arithmetic: '(' was never closed"),
        ("1 +", "not an expression of arithmetic: invalid syntax"),
    ],
)
def test_the_calculator_says_in_words_of_its_own_what_is_wrong(expression: str, said: str) -> None:
    with pytest.raises(ToolError) as refused:
        calculate(expression)
    assert str(refused.value) == said


@pytest.mark.parametrize(("clock", "hours"), [("0001-01-01T00:00:00Z", -1), ("9999-12-31T23:30:00+00:00", 14)])
def test_a_time_beyond_the_calendar_is_told(clock: str, hours: int) -> None:
    with pytest.raises(ToolError, match="beyond the years 1 to 9999"):
        TOOLS["clock"].run({"utc_offset": hours}, Setting(clock))
    assert "UTC" in TOOLS["clock"].run({"utc_offset": 0}, Setting(clock))


def test_the_clock_stands_at_the_experiments_time() -> None:
    assert TOOLS["clock"].run({"utc_offset": 0}, SETTING) == "Thursday, 2026-01-01 10:00 UTC"
    assert TOOLS["clock"].run({"utc_offset": -11.0}, SETTING) == "Wednesday, 2025-12-31 23:00 UTC-11"


@pytest.mark.parametrize("clock", ["", "now", "2026-01-01", "2026-01-01T12:00:00", "2026-13-01T12:00:00Z", 5, "9" * 50])
def test_a_clock_needs_a_time_with_an_offset(clock: object) -> None:
    data = {"version": 1, "model": "m", "messages": [{"role": "user", "content": "?"}], "clock": clock}
    with pytest.raises(ExperimentError) as refused:
        parse_experiment(data, models=["m"])
    assert refused.value.path == "clock"


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (1, "mi", "km", Fraction("1.609344")),
        (12, "in", "ft", Fraction(1)),
        (1, "lb", "oz", Fraction(16)),
        (212, "F", "C", Fraction(100)),
        (-40, "C", "F", Fraction(-40)),
        (0, "K", "C", Fraction("-273.15")),
        (2, "day", "h", Fraction(48)),
        (0.1, "l", "ml", Fraction(100)),
        (1, "gal", "l", Fraction("3.785411784")),
    ],
)
def test_units_by_their_definitions(value: float, source: str, target: str, result: Fraction) -> None:
    assert convert(value, source, target) == result


def test_every_unit_comes_back() -> None:
    for units in (*FACTORS.values(), TEMPERATURES):
        for one in units:
            for other in units:
                there = convert(5, one, other)
                assert convert(float(there), other, one) == pytest.approx(5)


def test_kinds_of_units_do_not_mix() -> None:
    with pytest.raises(ToolError, match="km is a unit of length, kg one of mass"):
        convert(1, "km", "kg")


def test_elements_by_name_and_symbol() -> None:
    said = "Iron (Fe): atomic number 26, atomic weight 55.845"
    for asked in ("Iron", "iron", " FE "):
        assert TOOLS["elements"].run({"element": asked}, SETTING) == said
    with pytest.raises(ToolError, match="no element 'Gold'"):
        TOOLS["elements"].run({"element": "Gold"}, SETTING)
    rows = list({id(row): row for row in table().values()}.values())
    assert [int(row["number"]) for row in rows] == list(range(1, 37))
    weights = [float(row["weight"]) for row in rows]
    falls = [rows[i]["symbol"] for i in range(1, 36) if weights[i] < weights[i - 1]]
    assert falls == ["K", "Ni"]  # the two places among these where the weight falls as the number rises


def test_every_schema_is_one_and_closed() -> None:
    for tool in TOOLS.values():
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        assert tool.parameters["additionalProperties"] is False
        assert tool.definition["function"]["name"] == tool.name
    assert [tool.name for tool in tools_named(["units", "clock", "units"])] == ["units", "clock"]
