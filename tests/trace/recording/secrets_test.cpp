// Which values of a command line are secrets, and which must stay readable.
#include "trace/recording/wire/secrets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/recording/files/stored_command.h"

namespace trainprof::recording {
namespace {

using Command = std::vector<std::string>;

Command Stored(const Command& command) { return StoredCommand(command, true); }

struct Case {
  Command command;
  Command stored;
};

TEST(Secrets, ValuesOfSecretArgumentsAreLeftOut) {
  const Case cases[] = {
      {{"--token", "abc"}, {"--token", "***"}},
      {{"--token=abc"}, {"--token=***"}},
      {{"--token", "12345"}, {"--token", "***"}},
      {{"-token", "abc"}, {"-token", "***"}},
      {{"--hf_token", "hf_a", "--lr", "1"}, {"--hf_token", "***", "--lr", "1"}},
      {{"--hfToken=x"}, {"--hfToken=***"}},
      {{"--token", "-x7f9"}, {"--token", "***"}},
      {{"api_key=abc"}, {"api_key=***"}},
      {{"--api-key", "7"}, {"--api-key", "***"}},
      {{"--apikey=abc"}, {"--apikey=***"}},
      {{"--openaiApiKey", "abc"}, {"--openaiApiKey", "***"}},
      {{"--key", "abc"}, {"--key", "***"}},
      {{"--license-key=a b c"}, {"--license-key=***"}},
      {{"--encryption_key", "0x1234"}, {"--encryption_key", "***"}},
      {{"HF_TOKEN=abc"}, {"HF_TOKEN=***"}},
      {{"env", "WANDB_API_KEY=abc", "python"}, {"env", "WANDB_API_KEY=***", "python"}},
      {{"--password", "123456"}, {"--password", "***"}},
      {{"--db-password=x"}, {"--db-password=***"}},
      {{"--dbpassword=x"}, {"--dbpassword=***"}},
      {{"--passwd=x", "--pass", "y"}, {"--passwd=***", "--pass", "***"}},
      {{"DB_PASS=hunter2"}, {"DB_PASS=***"}},
      {{"Pwd=hunter2"}, {"Pwd=***"}},
      {{"--secret", "x"}, {"--secret", "***"}},
      {{"--client-secret=/a/b"}, {"--client-secret=***"}},
      {{"AWS_SECRET_ACCESS_KEY=/a/b"}, {"AWS_SECRET_ACCESS_KEY=***"}},
      {{"AWS_ACCESS_KEY_ID=AKIA1"}, {"AWS_ACCESS_KEY_ID=***"}},
      {{"AWS_SESSION_TOKEN=x=="}, {"AWS_SESSION_TOKEN=***"}},
      {{"+model.hub_token=abc", "++trainer.api_key=x"},
       {"+model.hub_token=***", "++trainer.api_key=***"}},
      {{"-H", "Authorization: Bearer abc.def"}, {"-H", "Authorization: ***"}},
      {{"--header=Authorization: Bearer abc"}, {"--header=Authorization: ***"}},
      {{"--env=HF_TOKEN=abc"}, {"--env=HF_TOKEN=***"}},
      {{"-eHF_TOKEN=abc"}, {"-eHF_TOKEN=***"}},
      {{"Authorization:", "Bearer", "abc"}, {"Authorization:", "Bearer", "***"}},
      {{"sh", "-c", "curl -H 'Authorization: token abc' -o x"},
       {"sh", "-c", "curl -H 'Authorization: ***' -o x"}},
      {{"Bearer", "abc"}, {"Bearer", "***"}},
      {{"--header", "use Bearer abc now"}, {"--header", "use Bearer *** now"}},
      {{"--header", "X-Api-Key: abc"}, {"--header", "X-Api-Key: ***"}},
      {{"{\"api_key\": \"abc\", \"lr\": 1}"}, {"{\"api_key\": \"***\", \"lr\": 1}"}},
      {{"{'token':'abc','a':2}"}, {"{'token':'***','a':2}"}},
      {{"postgres://me:pw@db:5432/runs"}, {"postgres://me:***@db:5432/runs"}},
      {{"--url=https://me:p@ss@host/x"}, {"--url=https://me:***@host/x"}},
      {{"https://abcdef@github.com/a/b.git"}, {"https://***@github.com/a/b.git"}},
      {{"https://h/x?a=1&access_token=abc&b=2"}, {"https://h/x?a=1&access_token=***&b=2"}},
      {{"https://h/x?sig=a%2Fb&se=2"}, {"https://h/x?sig=***&se=2"}},
      {{"login", "hf_abcdefghijklmnopqrstuvwx"}, {"login", "***"}},
      {{"sh", "-c", "export HF_TOKEN=abc; python train.py --token xyz --lr 1"},
       {"sh", "-c", "export HF_TOKEN=***; python train.py --token *** --lr 1"}},
      {{"sh", "-c", "p --password  hunter2"}, {"sh", "-c", "p --password  ***"}},
      {{"sh", "-c", "p --password \\\n  hunter2\nq"}, {"sh", "-c", "p --password \\\n  ***\nq"}},
      {{"sh", "-c", "p --password \\\n --lr 1"}, {"sh", "-c", "p --password \\\n --lr 1"}},
      {{"--env=DB_PASSWORD=a,b"}, {"--env=DB_PASSWORD=***"}},
      {{"--env=A=1,DB_PASSWORD=a,LR=1"}, {"--env=A=1,DB_PASSWORD=***,LR=1"}},
      {{"bash", "-lc", "A_KEY='a b' python t.py"}, {"bash", "-lc", "A_KEY='***' python t.py"}},
      {{"--connection=Server=a;AccountKey=abc==;Timeout=3"},
       {"--connection=Server=a;AccountKey=***;Timeout=3"}},
  };
  for (const Case& each : cases) EXPECT_EQ(Stored(each.command), each.stored);
}

TEST(Secrets, WhatIsNoSecretStaysReadable) {
  const Command cases[] = {
      {"python", "train.py", "--tokenizer", "gpt2", "--max-tokens", "512"},
      {"--tokenizer=gpt2", "--tokenizer_name", "a/b", "TOKENIZERS_PARALLELISM=false"},
      {"--num-keys", "8", "--num_tokens=4096", "--max_new_tokens", "16"},
      {"--pad-token", "<pad>", "--eos_token", "</s>", "--pad-token", "PAD"},
      {"--placeholder_token", "sks", "--initializer_token=toy", "--image-token", "32000"},
      {"--max-token", "512", "--token-dropout", "0.1", "--token_type", "bpe"},
      {"--sort-key", "length", "--label-key", "y", "--image_key=jpg", "--text-key", "text"},
      {"--key-dim", "64", "--key_size=32", "--keyword", "cat", "--monkey", "banana"},
      {"--use-auth-token", "true", "--num-passes", "3", "--pass-through", "x"},
      {"--password-file", "/run/secrets/db", "--token-path=~/.hf/token", "--secret-name", "wandb"},
      {"--no-password", "train", "--key", "3"},
      {"PWD=/home/me", "AWS_DEFAULT_REGION=us-east-1", "AWS_PROFILE=dev"},
      {"ssh://git@github.com/a/b", "https://host:8080/a@b", "s3://bucket/a:b@c"},
      {"https://h/x?tokenizer=gpt2&max_tokens=5", "me@example.com"},
      {"{\"tokenizer\": \"gpt2\", \"max_tokens\": 5}"},
      {"--commit", "0123456789abcdef0123456789abcdef01234567", "--name", "sk-small"},
      {"", "-", "--", "=", "a=", "--token=", "-c", "print(1)"},
      {"basic", "training", "--keys", "a,b", "--rope", "token:5"},
      {"model.tokenizer.path=/a/b", "optimizer.key=7", "--set=a.key=7,lr=1"},
  };
  for (const Command& each : cases) EXPECT_EQ(Stored(each), each);
}

TEST(Secrets, NoArgumentsLeaveTheProgramsName) {
  EXPECT_EQ(StoredCommand({"python", "train.py", "--lr", "1"}, false), Command{"python"});
  EXPECT_EQ(StoredCommand({}, true), Command{});
}

TEST(Secrets, ASmallBufferIsNeverOverrun) {
  const std::string line("python\0--token\0abc\0--lr\0001", 26);
  for (size_t room = 0; room < 40; ++room) {
    std::string out(room + 1, '#');
    const size_t used = MaskSecrets(line.data(), line.size(), ' ', out.data(), room);
    EXPECT_LE(used, room);
    EXPECT_EQ(out[room], '#');
    EXPECT_EQ(out.substr(0, used), std::string("python --token *** --lr 1").substr(0, used));
  }
}

}  // namespace
}  // namespace trainprof::recording
