"""Numbers as a person reads them: bytes and seconds with fitting units, probabilities without a leading zero."""

BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_text(count: float) -> str:
    """1536 → "1.50 KiB"; whole bytes below 1 KiB."""
    unit = 0
    while count >= 1024 and unit < len(BINARY_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.2f} {BINARY_UNITS[unit]}"


def seconds_text(seconds: float) -> str:
    """0.0531 → "53 ms", 1.234 → "1.23 s"; what rounds to nothing but is not 0 → "<1 ms"."""
    if 0 < seconds < 0.0005:
        return "<1 ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.2f} s"


def probability_text(probability: float) -> str:
    """0.9621 → ".962"; 1 → "1.00"; what would round to 0 or 1 but is neither → "<.001", ">.999"."""
    if 0 < probability < 0.0005:
        return "<.001"
    if 0.9995 <= probability < 1:
        return ">.999"
    return f"{probability:.2f}" if probability >= 1 else f"{probability:.3f}"[1:]


def share_text(share: float) -> str:
    """0.2105 → "21.0%"; what would round to nothing or all but is neither → "<0.1%", ">99.9%"."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1 else f"{share:.1%}"
