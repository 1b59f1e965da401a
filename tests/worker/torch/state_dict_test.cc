#include "worker/torch/state_dict.h"

#include <torch/torch.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/storage/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string PathOf(const char* name) { return absl::StrCat(::testing::TempDir(), name); }

std::shared_ptr<Classifier> Seeded(uint64_t seed, const char* model = "mlp") {
  torch::manual_seed(seed);
  return MakeModel(model);
}

// Of all parameters and floating buffers, by name.
std::string Save(torch::nn::Module& model) {
  FlatModel flat(model);
  const std::string path = PathOf("state_dict.pt");
  EXPECT_THAT(SaveStateDict(flat.layout(), flat.GatherValues(), path), IsOk());
  return path;
}

TEST(StateDictTest, ComesBackIntoAnotherModel) {
  const auto saved = Seeded(1);
  const auto loaded = Seeded(2);
  saved->buffers()[0].fill_(7);
  ASSERT_THAT(LoadStateDict(Save(*saved), *loaded), IsOk());
  for (size_t i = 0; i < saved->parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(saved->parameters()[i], loaded->parameters()[i]));
  }
  EXPECT_TRUE(torch::equal(saved->buffers()[0], loaded->buffers()[0]));
}

TEST(StateDictTest, OfAnotherModelIsRefusedByName) {
  const auto lenet = Seeded(1, "lenet");
  EXPECT_THAT(
      LoadStateDict(Save(*Seeded(1)), *lenet),
      HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("that the model does not have")));
}

TEST(StateDictTest, ATensorThatIsMissingOrHasAnotherShapeIsNamed) {
  const std::string path = PathOf("other.pt");
  torch::nn::Linear model(2, 3);
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  const auto write = [&] {
    const std::vector<char> bytes = torch::pickle_save(dict);
    std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
  };
  dict.insert("weight", torch::ones({3, 2}));
  write();
  EXPECT_THAT(LoadStateDict(path, *model), HasCode(absl::StatusCode::kInvalidArgument,
                                                   HasSubstr("lacks the model's tensor \"bias\"")));
  dict.insert("bias", torch::ones({4}));
  write();
  EXPECT_THAT(LoadStateDict(path, *model),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("a tensor \"bias\" whose shape is not the model's")));
}

TEST(StateDictTest, AFileThatDoesNotFitChangesNothing) {
  const std::string path = PathOf("does_not_fit.pt");
  torch::nn::Linear model(2, 3);
  const torch::Tensor bias = model->bias.clone();
  const torch::Tensor weight = model->weight.clone();
  const auto refuses = [&](const torch::Tensor& of_weight) {
    c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
    dict.insert("bias", torch::ones({3}));  // comes before the weight, and fits
    dict.insert("weight", of_weight);
    const std::vector<char> bytes = torch::pickle_save(dict);
    std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
    EXPECT_THAT(LoadStateDict(path, *model),
                HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("\"weight\"")));
    EXPECT_TRUE(torch::equal(model->bias, bias));
    EXPECT_TRUE(torch::equal(model->weight, weight));
  };
  refuses(torch::ones({4, 2}));
  refuses(torch::ones({3, 2}, torch::kComplexFloat));
}

// What other programs write: no server's state, other types of floats, and a buffer that is none.
std::string PlainSafeTensors() {
  SafeTensorsHeader header;
  header.tensors = {{"bias", "F64", {2}, 0, 16},
                    {"num_batches_tracked", "I64", {}, 16, 24},
                    {"weight", "F32", {2, 1}, 24, 32}};
  const double bias[] = {3, 4};
  const int64_t batches = 7;
  const float weight[] = {1, 2};
  std::string bytes = EncodeSafeTensorsHeader(header);
  bytes.append(reinterpret_cast<const char*>(bias), sizeof(bias));
  bytes.append(reinterpret_cast<const char*>(&batches), sizeof(batches));
  bytes.append(reinterpret_cast<const char*>(weight), sizeof(weight));
  return bytes;
}

TEST(StateDictTest, ComesFromASafeTensorsFileOfAnyProgram) {
  const std::string path = PathOf("plain.safetensors");
  std::ofstream(path, std::ios::binary) << PlainSafeTensors();
  torch::nn::Linear model(1, 2);
  ASSERT_THAT(LoadStateDict(path, *model), IsOk());
  EXPECT_TRUE(torch::equal(model->weight, torch::tensor({{1.0F}, {2.0F}})));
  EXPECT_TRUE(torch::equal(model->bias, torch::tensor({3.0F, 4.0F})));
}

TEST(StateDictTest, ASafeTensorsFileThatIsCutIsDamaged) {
  const std::string path = PathOf("cut.safetensors");
  const std::string whole = PlainSafeTensors();
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() - 1);
  torch::nn::Linear model(1, 2);
  EXPECT_THAT(LoadStateDict(path, *model),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path + ": ")));
}

// Several servers save such files; see server/durable/checkpoint.
TEST(StateDictTest, AFileOfACheckpointOfSeveralServersNamesTheCommandThatMakesOneOfThem) {
  const std::string path = PathOf("striped.safetensors");
  const auto says = [&](const std::string& key, const std::string& what) {
    SafeTensorsHeader header;
    header.metadata[key] = "1";
    header.tensors = {{"sluice:checksum", "U8", {8}, 0, 8}};
    std::ofstream(path, std::ios::binary)
        << EncodeSafeTensorsHeader(header) << std::string(8, '\0');
    torch::nn::Linear model(1, 2);
    EXPECT_THAT(
        LoadStateDict(path, *model),
        HasCode(absl::StatusCode::kInvalidArgument,
                AllOf(HasSubstr(path + ": " + what), HasSubstr("sluicectl checkpoint export"))));
  };
  says("sluice", "the values of this checkpoint are in the files of several servers");
  says("sluice:stripe", "it has one server's part of a checkpoint");
}

TEST(StateDictTest, AFileThatIsNoneIsRefused) {
  const std::string path = PathOf("garbage.pt");
  std::ofstream(path) << "garbage";
  torch::nn::Linear model(2, 3);
  EXPECT_THAT(LoadStateDict(path, *model),
              HasCode(absl::StatusCode::kInvalidArgument, HasSubstr("is not a dict of tensors")));
  EXPECT_THAT(LoadStateDict(PathOf("nowhere.pt"), *model),
              HasCode(absl::StatusCode::kNotFound, HasSubstr("nowhere.pt")));
}

}  // namespace
}  // namespace sluice
