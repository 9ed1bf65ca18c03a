// Gradio ends its stream of messages once no event is open. While that word is on its way a new event may begin, and gradio's
// page takes the end for its end too: what was pressed shows nothing until something else is pressed. So while an event is open
// the end is not passed on; the stream goes on over a connection of its own. And while gradio's page has not heard yet of an
// end that was passed on, it hears of no event that began: it would not open a stream for that one.
(() => {
  const fetched = window.fetch;
  const open = new Set(); // events that have begun and not ended
  const early = new Set(); // events whose end came before the word that they have begun
  let heard = Promise.resolve(); // that gradio's page knows of the newest end that was passed on
  const HEAD = /^data: \{"msg":"(\w+)","event_id":(?:"(\w+)"|null)/;

  window.fetch = async (resource, options) => {
    const { pathname } = new URL(resource.url ?? resource, document.baseURI);
    if (pathname.endsWith("/queue/join")) return begun(await fetched(resource, options));
    if (pathname.endsWith("/queue/data")) return lasting(new Request(resource, options));
    return fetched(resource, options);
  };

  async function begun(response) {
    if (response.ok) {
      const { event_id } = await response.clone().json();
      if (!early.delete(event_id)) open.add(event_id);
    }
    await heard;
    return response;
  }

  async function lasting(request) {
    const connect = () => fetched(request.clone());
    const response = await connect();
    if (!response.ok) return response;
    let messages = split(response.body);
    const body = new ReadableStream({
      async pull(controller) {
        for (;;) {
          const { done, value } = await messages.read();
          if (done) {
            open.clear(); // the connection broke: gradio says so
            early.clear();
            return controller.close();
          }
          const [, kind, event] = HEAD.exec(value) ?? [];
          if (kind === "process_completed" && !open.delete(event)) early.add(event);
          if (kind === "close_stream" && open.size) {
            messages = split((await connect()).body);
            continue;
          }
          if (kind === "close_stream") heard = givenUp(request.signal);
          controller.enqueue(value);
          if (kind === "close_stream") controller.close(); // what comes after is gradio's giving up of the connection
          return undefined;
        }
      },
      cancel: (reason) => messages.cancel(reason),
    });
    return new Response(body.pipeThrough(new TextEncoderStream()), { headers: response.headers });
  }

  // Gradio's page gives a connection up once it has heard of its end; should it ever not, presses go on after a while.
  function givenUp(signal) {
    const patience = AbortSignal.timeout(5000);
    return new Promise((resolve) => {
      for (const one of [signal, patience]) one.addEventListener("abort", resolve, { once: true });
    });
  }

  // A reader of whole messages, each with the empty line that ends it.
  function split(bytes) {
    let rest = "";
    const whole = new TransformStream({
      transform(text, controller) {
        const parts = (rest + text).split("\n\n");
        rest = parts.pop();
        for (const part of parts) controller.enqueue(`${part}\n\n`);
      },
    });
    return bytes.pipeThrough(new TextDecoderStream()).pipeThrough(whole).getReader();
  }
})();
