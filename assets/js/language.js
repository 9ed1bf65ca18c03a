// The language that a page opens in: what a person chose in this browser, else what the browser prefers.
decodescope.language = (() => {
  const KEY = "decodescope-language";

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // a browser that keeps nothing
    }
  }

  // With a language it is remembered, too.
  return (chosen) => {
    if (chosen) {
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // the choice lasts as long as the page
      }
      return chosen;
    }
    const wanted = [stored(), ...navigator.languages.map((tag) => tag.split("-")[0])];
    return wanted.find((one) => decodescope.languages.includes(one)) ?? decodescope.languages[0];
  };
})();
