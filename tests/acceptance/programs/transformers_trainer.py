"""A small GPT-2, made of its configuration, trained by transformers' Trainer on tokens of chance.

usage: transformers_trainer.py STEPS
"""

import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

WORDS, LENGTH = 5000, 128


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        tokens = torch.randint(0, WORDS, (LENGTH,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main(steps):
    model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=256, n_layer=4, n_head=4))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, max_steps=int(steps), per_device_train_batch_size=16,
                                      logging_steps=1, save_strategy="no", report_to=[], dataloader_num_workers=2,
                                      disable_tqdm=True)
        Trainer(model=model, args=arguments, train_dataset=Tokens()).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
