"""What only tests use is no part of the program: each public function, class, constant, method and field has a user in
it, and each class of the style sheets something that bears it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "app.py", ROOT / "lesson.py"]
FILES += [path for folder in ("engine", "components") for path in sorted((ROOT / folder).rglob("*.py"))]

Definition = ast.FunctionDef | ast.ClassDef


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """Functions and classes, and constants in capitals."""
    for node in body:
        if isinstance(node, Definition):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name) and part.id.isupper())


def public(body: list[ast.stmt]) -> Iterator[str]:
    return (name for name in defined(body) if not name.startswith("_"))


class Uses:
    """What the modules say. A function that only calls itself is not used."""

    def __init__(self) -> None:
        self.qualified: set[str] = set()  # "module.name", also of a name of one's own
        self.handed_on: set[str] = set()  # modules in the place of a value, such as the panels
        self.attributes: set[str] = set()  # names behind a dot, and those that stand in a text, such as an intent's

    def read(self, module: str, tree: ast.Module) -> None:
        known = {name: f"{module}.{name}" for name in defined(tree.body)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                self.qualified |= {f"{node.module}.{alias.name}" for alias in node.names}
        for top in tree.body:
            own = f"{module}.{top.name}" if isinstance(top, Definition) else ""
            before_a_dot = {id(node.value) for node in ast.walk(top) if isinstance(node, ast.Attribute)}
            told = {id(node.value) for node in ast.walk(top) if isinstance(node, ast.Expr)}  # docstrings
            for node in ast.walk(top):
                if isinstance(node, ast.Attribute):
                    self.attributes.add(node.attr)
                    self.qualified.add(f"{known.get(ast.unparse(node.value), ast.unparse(node.value))}.{node.attr}")
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and known.get(node.id, own) != own:
                    self.qualified.add(known[node.id])
                    if id(node) not in before_a_dot:
                        self.handed_on.add(known[node.id])
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
                    self.attributes.add(node.value)
                    self.qualified |= {known[word] for word in re.findall(r"\w+", node.value) if word in known} - {own}


TREES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
    for path in FILES
}
USES = Uses()
for module, tree in TREES.items():
    USES.read(module, tree)
NODES = [node for tree in TREES.values() for node in ast.walk(tree)]
#: Names behind a dot that is read, `x.name`, and those of a pattern. No text that happens to be the same word counts.
READ = {node.attr for node in NODES if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
READ |= {name for node in NODES if isinstance(node, ast.MatchClass) for name in node.kwd_attrs}


def test_every_function_class_and_constant_has_a_user_in_the_program() -> None:
    unused = [
        f"{module}.{name}"
        for module, tree in TREES.items()
        for name in public(tree.body)
        if f"{module}.{name}" not in USES.qualified and not (module in USES.handed_on and name in USES.attributes)
    ]
    assert unused == []


def test_every_method_has_a_user_in_the_program() -> None:
    unused = [
        f"{module}.{owner.name}.{name}"
        for module, tree in TREES.items()
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for name in public(owner.body)
        if name not in READ
    ]
    assert unused == []


#: Written whole, as JSON or as front matter, for readers outside: there the name is the use.
WRITTEN_WHOLE = ("engine.answers.", "engine.trace", "engine.truncated", "engine.space.spacefile")


def test_every_field_is_read_in_the_program() -> None:
    unread = [
        f"{module}.{owner.name}.{field.target.id}"
        for module, tree in TREES.items()
        if not module.startswith(WRITTEN_WHOLE)
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for field in owner.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id not in READ
    ]
    assert unread == []


#: Of the nodes that gradio and plotly make.
FOREIGN = {
    *("checkbox-container", "contain", "fillable", "gr-group", "gradio-container", "html-container", "icon"),
    *("input-container", "label-text", "nsewdrag", "prose", "styler", "tab-wrapper", "tabitem", "wrap-inner"),
}
#: Names that code puts together: `set-` and a setting, `ds-` and a widget.
PUT_TOGETHER = re.compile(r"^(set|ds)-")


def test_every_class_and_id_of_a_style_sheet_is_borne_by_something() -> None:
    scripts = sorted((ROOT / "assets" / "js").glob("*.js"))
    words = {word for path in [*FILES, *scripts] for word in re.findall(r"[\w-]+", path.read_text(encoding="utf-8"))}
    unused = []
    for sheet in sorted((ROOT / "assets" / "css").glob("*.css")):
        selectors = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        names = set(re.findall(r"[.#]([a-zA-Z][\w-]*)", selectors)) - FOREIGN
        unused += [f"{sheet.name}: {name}" for name in names if not {name, PUT_TOGETHER.sub("", name)} & words]
    assert unused == []
