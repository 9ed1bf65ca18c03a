"""A sheet on which the operations of a layer are written down, ours beside the model's."""

import torch
from torch import nn

from engine.anatomy import AnatomyError
from engine.answers.layer import Operation
from engine.probes import by_hand
from engine.probes.watched import Seen
from engine.said import said
from engine.trace import Floats

#: So many numbers of each result are kept, to be compared by eye.
FIRST = 8


class Sheet:
    """Operations in the order in which they are worked out."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.operations: list[Operation] = []

    def add(
        self,
        stage: str,
        name: str,
        form: str,
        ours: torch.Tensor,
        model: torch.Tensor | None = None,
        **values: float | int | str,
    ) -> torch.Tensor:
        """Write an operation down and give its result back. The model's numbers may come in any shape and type.

        Raises `AnatomyError` where there are more or fewer of them.
        """
        if model is not None and model.numel() != ours.numel():
            raise AnatomyError(said("numbers_by_hand", name=name, model=model.numel(), ours=ours.numel()))
        theirs = None if model is None else model.float().reshape(ours.shape)
        self.operations.append(
            Operation(
                name=name,
                stage=stage,
                form=form,
                values=values,
                shape=tuple(ours.shape),
                norm=float(ours.norm()),
                low=float(ours.min()),
                high=float(ours.max()),
                difference=None if theirs is None else relative_difference(ours, theirs),
                ours=_first(ours),
                model=None if theirs is None else _first(theirs),
            )
        )
        return ours

    def norm(self, stage: str, name: str, module: nn.Module, vector: torch.Tensor) -> torch.Tensor:
        """A norm of the model, worked out by hand."""
        norm = by_hand.read_norm(module, vector)
        return self.add(
            stage,
            name,
            "layer_norm" if norm.centres else "rms_norm",
            norm(vector),
            self.seen.gave(module),
            epsilon=norm.epsilon,
            weight="(1 + w)" if norm.one_plus else "w",
            plus="" if norm.bias is None else " + b",
        )

    def linear(self, stage: str, name: str, linear: by_hand.Linear, vector: torch.Tensor) -> torch.Tensor:
        """A projection of the model, worked out by hand."""
        gave = self.seen.gave(linear.module)
        rows, columns = linear.weight.shape
        return self.add(
            stage,
            name,
            "linear_part" if linear.shared else "linear",
            linear(vector),
            None if gave is None else gave.flatten()[linear.rows],
            module=linear.name,
            rows=rows,
            columns=columns,
            first=linear.rows.start,
            last=linear.rows.stop - 1,
            plus="" if linear.bias is None else " + b",
        )


def relative_difference(ours: torch.Tensor, model: torch.Tensor) -> float:
    """max|ours − model| ÷ max|model|, the plain largest difference where the model's numbers are all 0."""
    largest = float(model.abs().max())
    difference = float((ours - model).abs().max())
    return difference / largest if largest else difference


def _first(tensor: torch.Tensor) -> Floats:
    found: Floats = tensor.flatten()[:FIRST].numpy(force=True).copy()
    return found
