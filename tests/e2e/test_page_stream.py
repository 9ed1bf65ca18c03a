"""A press is answered also where gradio's word that its stream of messages ends comes late."""

import pytest

from tests.e2e.conftest import OpenApp

#: Holds the word back for a second, and counts the presses that fall into one.
LATE_END = """
const fetched = window.fetch;
window.pressedMeanwhile = 0;
window.fetch = async (resource, options) => {
  const address = String(resource.url ?? resource);
  if (address.includes("/queue/join")) window.pressedMeanwhile += window.ending ? 1 : 0;
  const response = await fetched(resource, options);
  if (!address.includes("/queue/data")) return response;
  const late = new TransformStream({
    async transform(bytes, controller) {
      const [before, end] = new TextDecoder().decode(bytes).split('data: {"msg":"close_stream"');
      if (before) controller.enqueue(new TextEncoder().encode(before));
      if (end === undefined) return;
      window.ending = true;
      await new Promise((resolve) => setTimeout(resolve, 1000));
      window.ending = false;
      controller.enqueue(new TextEncoder().encode('data: {"msg":"close_stream"' + end));
    },
  });
  return new Response(response.body.pipeThrough(late), { headers: response.headers });
};
"""


@pytest.mark.parametrize("held", ["on its way", "in gradio's page"])
def test_a_press_while_the_stream_ends_is_answered(app: str, visit: OpenApp, held: str) -> None:
    page = visit().page.context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    if held == "on its way":
        page.add_init_script(LATE_END)
    page.goto(app)
    page.wait_for_selector("#timeline .t")
    if held == "in gradio's page":  # which takes up what the page's own script passes on
        page.evaluate(f"() => {{{LATE_END}}}")
        page.click('#rail .st[data-id="processors"]')
    for station in ("tokens", "kv_cache", "tensors", "draw"):
        page.wait_for_function("window.ending")
        page.click(f'#rail .st[data-id="{station}"]')
        page.wait_for_selector(f'#rail .st[data-id="{station}"][aria-current]')
    assert page.evaluate("window.pressedMeanwhile") >= 4
    assert said == []
