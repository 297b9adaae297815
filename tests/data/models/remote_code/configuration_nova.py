from transformers import PretrainedConfig


class NovaConfig(PretrainedConfig):
    model_type = "nova"
