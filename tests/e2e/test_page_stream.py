"""A press is answered also where gradio's word that its stream of messages ends comes late."""

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


def test_a_press_while_the_stream_ends_is_answered(visit: OpenApp) -> None:
    page = visit()
    page.page.context.add_init_script(LATE_END)
    page.page.reload()
    page.page.wait_for_selector("#timeline .t")
    for station in ("tokens", "kv_cache", "tensors", "draw"):
        page.page.wait_for_function("window.ending")
        page.open(station)
    assert page.page.evaluate("window.pressedMeanwhile") >= 4
