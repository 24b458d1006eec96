"""The images of ``stct correct --encoder``: read, embedded, ready to correct."""

from pathlib import Path

from stct.console import progress
from stct.data.embedded import Embedded, embedded_images
from stct.data.images import read_images
from stct.data.inputs import check_label_kind
from stct.encoders.cache import default_cache
from stct.encoders.embedding import Encoder, embed


def embed_source(
    source: Path,
    encoder: Encoder,
    *,
    label_column: str = "label",
    image_column: str | None = None,
    id_column: str | None = None,
    skip_bad: bool = False,
    cache_dir: Path | None = None,
    use_cache: bool = True,
    labels_required: bool = True,
    classes: bool = True,
    quiet: bool = False,
) -> Embedded:
    """Read images as `read_images` does and embed them as `embed` does.

    Labels that are no classes are refused before that takes time.
    """
    with progress("Reading", quiet=quiet) as report:
        images = read_images(
            source,
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            at_most=encoder.preprocess.pixels,
            skip_bad=skip_bad,
            labels_required=labels_required,
            progress=report,
        )
    if classes and images.labels is not None:
        check_label_kind(images.labels.tolist(), f"{source}: column {label_column!r}")
    with progress("Embedding", quiet=quiet) as report:
        vectors = embed(
            images.images,
            encoder,
            cache_dir=(cache_dir or default_cache()) if use_cache else None,
            progress=report,
        )
    about = {"encoder": encoder.name, "encoder_digest": encoder.digest}
    return embedded_images(
        source,
        images,
        vectors,
        about,
        label_column=label_column,
        image_column=image_column,
    )
