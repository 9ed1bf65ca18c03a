"""A clock that stands still: it tells the experiment's own time, so that a run can be made again."""

from datetime import datetime, timedelta, timezone
from typing import Any

from engine.tools.tool import Setting, Tool, ToolError, schema

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _run(arguments: dict[str, Any], setting: Setting) -> str:
    hours = int(arguments["utc_offset"])  # 1.0 is an integer in JSON, too
    try:
        there = datetime.fromisoformat(setting.clock).astimezone(timezone(timedelta(hours=hours)))
    except OverflowError:
        raise ToolError("that time is beyond the years 1 to 9999") from None
    zone = "UTC" if hours == 0 else f"UTC{hours:+d}"
    return f"{_DAYS[there.weekday()]}, {there:%Y-%m-%d %H:%M} {zone}"


CLOCK = Tool(
    name="clock",
    description="Tell the date, the day of the week and the time.",
    parameters=schema(
        {
            "utc_offset": {
                "type": "integer",
                "description": "Hours ahead of UTC, 0 for UTC itself",
                "minimum": -12,
                "maximum": 14,
            }
        }
    ),
    run=_run,
)
