"""The settings of a run as Gradio's own controls; `compose` turns what stands in them into an experiment.

The controls have no limits of their own: the experiment's validation names the field and what is allowed.

No event of the server has the controls among its inputs. Once such an event is over, gradio's page keeps the state of
each of its inputs up to date with every message of any other event: forty controls would cost a run a third of the time
that a token takes in the browser. So a press first brings their values into one hidden part, in the browser.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import gradio as gr

from components.compose import TOOLS, form_values
from components.copy import words
from engine.experiment import Experiment
from engine.values import Strategy

GRAMMARS = ("none", "json_schema", "regex", "lark")
MISTAKES = ("none", "mask_not_extended", "history_reencoded", "eos_not_watched")
CHOICES = ("auto", "required", "none")
ORDERS = ("transformers", "llama.cpp", "custom")
STRATEGIES = get_args(Strategy)
POSITIONS = ("go_on", "restart")


class SettingsForm:
    """`controls` by the form's field name, in a fixed order; `build` creates them inside the current Blocks.

    `values` is the part that holds what stood in them when `pressed` was.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._now = form_values(experiment)
        self.controls: dict[str, gr.components.Component] = {}
        self.values: gr.JSON

    def build(self) -> dict[str, gr.components.Component]:
        with gr.Group(elem_classes="settings"):
            self._number("temperature", 0.1)
            self._number("top_k", 1)
            self._number("top_p", 0.05)
            self._number("repetition_penalty", 0.05)
            self._number("seed", 1)
            self._number("max_new_tokens", 1)
            self._choice("order", ORDERS)
            self._check("do_sample")
        with gr.Accordion(words("settings").text("more_sampling"), open=False, elem_classes="fold"):
            with gr.Group(elem_classes="settings"):
                self._number("min_p", 0.01)
                self._number("typical_p", 0.05)
                self._number("no_repeat_ngram_size", 1)
                self._number("min_new_tokens", 1)
            self._text("custom_order", lines=2)
            self._text("bad_words", lines=2)
            self._text("suppress_tokens")
        with gr.Accordion(words("settings").text("stop_and_grammar"), open=False, elem_classes="fold"):
            self._text("stop_strings", lines=2)
            self._choice("grammar_kind", GRAMMARS)
            self._text("grammar_source", lines=4)
        with gr.Accordion(words("settings").text("context"), open=False, elem_classes="fold"):
            self._choice("strategy", STRATEGIES)
            with gr.Group(elem_classes="settings"):
                self._number("max_tokens", 1)
            self._choice("positions", POSITIONS)
        with gr.Accordion(words("settings").text("tools"), open=False, elem_classes="fold"):
            with gr.Group(elem_classes="settings"):
                for name in TOOLS:
                    self._check(f"tool_{name}")
            self._choice("tool_choice", CHOICES)
            self._text("clock")
        with gr.Accordion(words("settings").text("template_and_mistakes"), open=False, elem_classes="fold"):
            self._text("system_prompt", lines=2)
            self._check("use_template")
            self._check("obey_marks_in_content")
            self._choice("mistake", MISTAKES)
        self.values = gr.JSON(visible=False)
        return self.controls

    def pressed(self, event: Callable[..., gr.events.Dependency]) -> gr.events.Dependency:
        """After `event`, such as the click of a button, with `values` filled. What follows has them as an input."""
        return event(None, list(self.controls.values()), self.values, js="(...values) => [values]")

    def read(self, values: Sequence[Any]) -> dict[str, Any]:
        """What came in `values`, by the form's field name, as each control gives it to an event of its own.

        Raises:
            gr.Error: a choice that is not offered.
        """
        fields = zip(self.controls.items(), values, strict=True)
        return {name: control.preprocess(value) for (name, control), value in fields}

    def _number(self, name: str, step: float) -> None:
        self._keep(name, gr.Number(self._now[name], step=step, **self._common(name)))

    def _text(self, name: str, *, lines: int = 1) -> None:
        info = words("settings").sections.get(f"{name}_help")
        self._keep(name, gr.Textbox(self._now[name], lines=lines, max_lines=8, info=info, **self._common(name)))

    def _check(self, name: str) -> None:
        self._keep(name, gr.Checkbox(self._now[name], **self._common(name)))

    def _choice(self, name: str, values: tuple[str, ...]) -> None:
        choices = [(words("settings").text(f"{name}:{value}"), value) for value in values]
        info = words("settings").sections.get(f"{name}_help")
        self._keep(name, gr.Dropdown(choices, value=self._now[name], info=info, **self._common(name)))

    def _common(self, name: str) -> dict[str, Any]:
        return {"label": words("settings").text(name), "elem_id": f"set-{name}", "min_width": 120}

    def _keep(self, name: str, control: gr.components.Component) -> None:
        self.controls[name] = control
