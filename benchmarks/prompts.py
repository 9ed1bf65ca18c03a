"""Prompts of a given length, and experiments over them with one set of sampling settings for every measurement."""

from transformers import PreTrainedTokenizerFast

from engine.experiment import Experiment, Sampling, Stop

SETTINGS = {"temperature": 0.7, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1}

PASSAGE = (
    "A language model reads a text as a row of tokens and gives, for each place in the row, a number for every token "
    "that could come next. One of them is chosen, put at the end, and the row is read again. What was computed for the "
    "tokens before is kept, so that only the newest one has to go through all the layers. "
)


def prompt_of(tokenizer: PreTrainedTokenizerFast, length: int) -> str:
    """A text of exactly `length` tokens. Raises ValueError where this tokenizer cuts it otherwise."""
    ids: list[int] = tokenizer.encode(PASSAGE * (1 + length // 20), add_special_tokens=False)[:length]
    text = str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))
    if tokenizer.encode(text, add_special_tokens=False) != ids:
        raise ValueError(f"no prompt of exactly {length} tokens from this passage with this tokenizer")
    return text


def experiment_of(model_id: str, prompt: str, new_tokens: int) -> Experiment:
    """Exactly `new_tokens` sampled after a raw prompt: no end of sequence before them."""
    return Experiment(
        version=1,
        model=model_id,
        prompt=prompt,
        sampling=Sampling(**SETTINGS, min_new_tokens=new_tokens, seed=1),
        stop=Stop(max_new_tokens=new_tokens),
    )
