"""A calculator whose every step has a bound: no whole number over 1,025 bits is ever begun, not even on the way."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import simpleeval

from engine.tools.tool import Setting, Tool, ToolError, schema

MAX_CHARACTERS = 200
MAX_BITS = 1_024
_BITS_A_DIGIT = math.log2(10)

#: Signs that people and models write for those of Python.
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})

Number = int | float


def _bits(number: Number) -> float:
    """How many bits the whole part takes; a float takes its exponent."""
    return number.bit_length() if isinstance(number, int) else max(0, math.frexp(number)[1])


def _checked(work: Callable[..., Any], bits: Callable[..., float]) -> Callable[..., Number]:
    """`work` on plain numbers only, and only where a bound on the result's size says that it is small."""

    def run(*numbers: Any) -> Number:
        if not all(type(number) in (int, float) for number in numbers):
            raise ToolError("only plain numbers can be calculated with")
        if bits(*numbers) > MAX_BITS:
            raise ToolError(f"a number on the way to the result would have more than {MAX_BITS:,} bits")
        result = work(*numbers)
        if type(result) not in (int, float):
            raise ToolError("the result is no real number")
        return result  # type: ignore[no-any-return]  # its type was just looked at

    return run


def _most(*numbers: Number) -> float:
    return max(map(_bits, numbers))


def _rounded(*numbers: Number) -> float:
    """Rounding a whole number to a place before the point makes that power of ten first."""
    return max(_most(*numbers), *(_BITS_A_DIGIT * abs(digits) for digits in numbers[1:]), 0)


_OPERATORS = {
    ast.Add: _checked(operator.add, _most),
    ast.Sub: _checked(operator.sub, _most),
    ast.Mult: _checked(operator.mul, lambda one, other: _bits(one) + _bits(other)),
    ast.Div: _checked(operator.truediv, _most),
    ast.FloorDiv: _checked(operator.floordiv, _most),
    ast.Mod: _checked(operator.mod, _most),
    ast.Pow: _checked(operator.pow, lambda base, exponent: max(1.0, _bits(base)) * abs(exponent)),
    ast.UAdd: _checked(operator.pos, _most),
    ast.USub: _checked(operator.neg, _most),
}
_FUNCTIONS = {
    "abs": _checked(abs, _most),
    "ceil": _checked(math.ceil, _most),
    "exp": _checked(math.exp, _most),
    "floor": _checked(math.floor, _most),
    "log": _checked(math.log, _most),
    "log10": _checked(math.log10, _most),
    "round": _checked(round, _rounded),
    "sqrt": _checked(math.sqrt, _most),
}
_ALLOWED = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.operator,
    ast.unaryop,
)
_NAMES = {"pi": math.pi, "e": math.e}


def calculate(expression: str) -> Number:
    """The value of an arithmetic expression. Raises `ToolError` with what is wrong."""
    if len(expression) > MAX_CHARACTERS:
        raise ToolError(f"an expression has at most {MAX_CHARACTERS} characters, this has {len(expression):,}")
    evaluator = simpleeval.SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
    try:
        text = expression.translate(_SIGNS).strip()
        tree = ast.parse(text, mode="eval").body
        if not all(isinstance(node, _ALLOWED) for node in ast.walk(tree)):
            raise ToolError("not an expression of arithmetic")
        value = evaluator.eval(text, previously_parsed=tree)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except ToolError:
        raise
    except RecursionError:
        raise ToolError("the expression is nested too deeply") from None
    except (simpleeval.InvalidExpression, SyntaxError, MemoryError) as error:
        raise ToolError(f"not an expression of arithmetic: {str(error).partition('(')[0].strip()}") from None
    except (OverflowError, TypeError, ValueError) as error:
        raise ToolError(f"cannot be calculated: {error}") from None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ToolError("the result is no finite number")
    return value  # type: ignore[no-any-return]  # its type was just looked at


def number_text(value: Number) -> str:
    """A whole number in full, any other with at most 12 digits."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _run(arguments: dict[str, Any], _: Setting) -> str:
    expression = arguments["expression"]
    return f"{expression} = {number_text(calculate(expression))}"


CALCULATOR = Tool(
    name="calculator",
    description="Calculate an arithmetic expression exactly.",
    parameters=schema(
        {
            "expression": {
                "type": "string",
                "description": "Numbers, + - * / // % ** and parentheses, for example 2 * (3 + 4)",
                "minLength": 1,
                "maxLength": MAX_CHARACTERS,
            }
        }
    ),
    run=_run,
)
