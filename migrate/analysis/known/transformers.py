"""Hugging Face: models, data sets, adapters, and what is in the output of a model.

Tokenizers, configurations, processors and the Trainer have no row: nothing is asked of them.
"""

from migrate.analysis.known.table import Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

_LIBRARIES = ("transformers", "pytorch_transformers", "pytorch_pretrained_bert")
_TASKS = (
    "CausalLM MaskedLM Seq2SeqLM PreTraining NextSentencePrediction SequenceClassification TokenClassification "
    "QuestionAnswering MultipleChoice ConditionalGeneration ImageClassification ObjectDetection SemanticSegmentation "
    "InstanceSegmentation UniversalSegmentation DepthEstimation MaskedImageModeling MaskGeneration CTC XVector "
    "AudioClassification AudioFrameClassification SpeechSeq2Seq Vision2Seq ImageTextToText VideoClassification "
    "ZeroShotImageClassification ZeroShotObjectDetection"
)
#: Class methods that make an object of the class, or of one that derives from it.
MAKING = frozenset({"from_pretrained", "from_config"})
_MODELS = ("*Model", "*PreTrainedModel", "AutoModel*", "*LMHead", *(f"*For{task}" for task in _TASKS.split()))

ROWS: tuple[Row, ...] = (
    *(
        Makes(f"{library}.{name}{made}", Role.MODEL)
        for library in _LIBRARIES
        for name in _MODELS
        for made in ("", *(f".{name}" for name in sorted(MAKING)))
    ),
    # Another framework, or no model at all, for all that the name says.
    *each(Other, _LIBRARIES, "TF* TF*.* Flax* Flax*.* DataCollatorFor*"),
    *each(
        Makes,
        ("diffusers",),
        "*Model *Model.from_pretrained *Model.from_config AutoencoderKL AutoencoderKL.from_pretrained",
        role=Role.MODEL,
    ),
    *each(Passes, ("peft",), "get_peft_model prepare_model_for_kbit_training", argument=(0, "model")),
    Passes("peft.PeftModel.from_pretrained", (0, "model")),
    *each(Makes, ("datasets",), "load_dataset load_from_disk concatenate_datasets Dataset.from_*", role=Role.DATASET),
)

#: Fields of a model's output that have one row a sample, and those that have none.
OUTPUT_ROWS = frozenset(
    """logits last_hidden_state pooler_output start_logits end_logits prediction_logits seq_relationship_logits
    encoder_last_hidden_state image_embeds text_embeds""".split()
)
OUTPUT_FOLDED = frozenset({"loss"})
