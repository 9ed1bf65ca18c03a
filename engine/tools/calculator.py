"""A calculator whose every step has a bound: no whole number over 1,025 bits is ever begun, none over 1,024 given."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import simpleeval

from engine.tools.tool import Setting, Tool, ToolError, schema

MAX_CHARACTERS = 200
MAX_BITS = 1_024
_TOO_LONG = f"a number on the way to the result would have more than {MAX_BITS:,} bits"
_BITS_A_DIGIT = math.log2(10)
_HUGE = 1e300  # an exponent that multiplies without overflow, and yet too large for any base but 0 and 1

#: Signs that people and models write for those of Python.
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"})

Number = int | float


def _bits(number: Number) -> float:
    """How many bits the whole part takes; a float takes its exponent."""
    if isinstance(number, int):
        return number.bit_length()
    return max(0, math.frexp(number)[1]) if _finite(number) else math.inf


def _finite(number: Number) -> bool:
    return isinstance(number, int) or math.isfinite(number)  # the largest whole numbers are beyond every float


def _checked(work: Callable[..., Any], bits: Callable[..., float]) -> Callable[..., Number]:
    """`work` on plain numbers only, and only where a bound on the result's size says that it is small.

    The bound may be one bit too many, so that what it lets by is looked at once more.
    """

    def run(*numbers: Any) -> Number:
        if not all(type(number) in (int, float) for number in numbers):
            raise ToolError("only plain numbers can be calculated with")
        if bits(*numbers) > MAX_BITS + 1:
            raise ToolError(_TOO_LONG)
        result = work(*numbers)
        if type(result) not in (int, float):
            raise ToolError("the result is no real number")
        if _bits(result) > MAX_BITS:
            raise ToolError(_TOO_LONG)
        return result  # type: ignore[no-any-return]  # its type was just looked at

    return run


def _most(*numbers: Number) -> float:
    return max(map(_bits, numbers))


def _rounded(*numbers: Number) -> float:
    """Rounding a whole number to a place before the point makes that power of ten first."""
    return max(_most(*numbers), *(_BITS_A_DIGIT * -digits for digits in numbers[1:]), 0)


def _bits_of_power(base: Number, exponent: Number) -> float:
    """At most a bit less than the power's whole part takes; 0 and less where that is no more than 1."""
    if not _finite(base) or not _finite(exponent):
        return math.inf
    if abs(base) in (0, 1):
        return 0
    return math.log2(abs(base)) * max(-_HUGE, min(exponent, _HUGE))


def _not_lost(work: Callable[..., Any]) -> Callable[..., Any]:
    """`work` that gives 0 for a 0 only: any other result that small would be no result."""

    def run(*numbers: Number) -> Any:
        result = work(*numbers)
        if result == 0 and 0 not in numbers:
            raise ToolError("a number on the way to the result would be too close to 0")
        return result

    return run


def _power(base: Number, exponent: Number) -> Any:
    try:
        return operator.pow(base, exponent)
    except OverflowError:
        return math.inf


_OPERATORS = {
    ast.Add: _checked(operator.add, _most),
    ast.Sub: _checked(operator.sub, _most),
    ast.Mult: _checked(_not_lost(operator.mul), lambda one, other: _bits(one) + _bits(other)),
    ast.Div: _checked(_not_lost(operator.truediv), _most),
    ast.FloorDiv: _checked(operator.floordiv, _most),
    ast.Mod: _checked(operator.mod, _most),
    ast.Pow: _checked(_not_lost(_power), _bits_of_power),
    ast.UAdd: _checked(operator.pos, _most),
    ast.USub: _checked(operator.neg, _most),
}


def _function(
    name: str, work: Callable[..., Any], bits: Callable[..., float] = _most, *, most: int = 1
) -> Callable[..., Number]:
    """A function of one number, or of up to `most`, that says in words what it cannot do."""
    checked = _checked(work, bits)

    def run(*numbers: Any) -> Number:
        if not 1 <= len(numbers) <= most:
            raise ToolError(f"{name} takes {'1 number' if most == 1 else f'1 to {most} numbers'}, got {len(numbers)}")
        try:
            return checked(*numbers)
        except ToolError:
            raise
        except OverflowError:
            raise ToolError(_TOO_LONG) from None
        except (TypeError, ValueError):
            raise ToolError(f"{name} is not defined for {', '.join(map(number_text, numbers))}") from None

    return run


_FUNCTIONS = {
    "abs": _function("abs", abs),
    "ceil": _function("ceil", math.ceil),
    "exp": _function("exp", _not_lost(math.exp)),
    "floor": _function("floor", math.floor),
    "log": _function("log", math.log, most=2),
    "log10": _function("log10", math.log10),
    "round": _function("round", round, _rounded, most=2),
    "sqrt": _function("sqrt", math.sqrt),
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


def _check_names(tree: ast.expr) -> None:
    """Raise `ToolError` for a name that is none of ours, and for a number that stands where a function is called."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not all(isinstance(function, ast.Name) for function in called):
        raise ToolError("a * is missing before a parenthesis")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            kind, known = ("function", sorted(_FUNCTIONS)) if node in called else ("number", sorted(_NAMES))
            if node.id not in known:
                raise ToolError(f"unknown {kind} {node.id!r}; there are: {', '.join(known)}")


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
        _check_names(tree)
        value = evaluator.eval(text, previously_parsed=tree)
    except ZeroDivisionError:
        raise ToolError("division by zero") from None
    except ToolError:
        raise
    except RecursionError:
        raise ToolError("the expression is nested too deeply") from None
    except SyntaxError as error:
        raise ToolError(f"not an expression of arithmetic: {error.msg}") from None
    except (simpleeval.InvalidExpression, MemoryError) as error:
        raise ToolError(f"not an expression of arithmetic: {str(error).partition('(')[0].strip()}") from None
    except (OverflowError, TypeError, ValueError) as error:
        raise ToolError(f"cannot be calculated: {error}") from None
    if type(value) not in (int, float) or not _finite(value):
        raise ToolError("the result is no finite number")
    return value  # type: ignore[no-any-return]  # its type was just looked at


def number_text(value: Number) -> str:
    """A whole number in full, any other with at most 12 digits."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _run(arguments: dict[str, Any], _: Setting) -> str:
    expression = arguments["expression"]
    value = calculate(expression)
    text = number_text(value)
    # Beyond that a float stands for the whole numbers around it too.
    exact = isinstance(value, int) or (float(text) == value and abs(value) < 2**53)
    return f"{expression} {'=' if exact else '≈'} {text}"


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
