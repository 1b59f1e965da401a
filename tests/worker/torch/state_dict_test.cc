#include "worker/torch/state_dict.h"

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"
#include "worker/torch/flat_model.h"
#include "worker/torch/models/models.h"

namespace sluice {
namespace {

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
  EXPECT_THAT(SaveStateDict(flat.layout(), flat.GatherValues(), "", path), IsOk());
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
  const torch::Tensor batches =
      model->register_buffer("num_batches_tracked", torch::zeros({}, torch::kInt64));
  ASSERT_THAT(LoadStateDict(path, *model), IsOk());
  EXPECT_TRUE(torch::equal(model->weight, torch::tensor({{1.0F}, {2.0F}})));
  EXPECT_TRUE(torch::equal(model->bias, torch::tensor({3.0F, 4.0F})));
  EXPECT_EQ(batches.item<int64_t>(), 7);
  torch::nn::Linear without(1, 2);  // integers that a model lacks are left out
  EXPECT_THAT(LoadStateDict(path, *without), IsOk());
}

TEST(StateDictTest, ASafeTensorsFileThatIsCutIsDamaged) {
  const std::string path = PathOf("cut.safetensors");
  const std::string whole = PlainSafeTensors();
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() - 1);
  torch::nn::Linear model(1, 2);
  EXPECT_THAT(LoadStateDict(path, *model),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(path + ": ")));
}

// Checkpoints of "weight" and "bias", of so many servers.
class CheckpointStateDictTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  CheckpointStateDictTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const auto layout = std::make_shared<const Layout>(
        *Layout::Create({{"weight", {30, 20}, RangeKind::kParameter, DataType::kFloat32, 0, 600},
                         {"bias", {30}, RangeKind::kParameter, DataType::kFloat16, 600, 30}}));
    ShardCheckpoint checkpoint = KnownCheckpoint({Incarnation(1), Step(5)}, layout);
    const auto parameters = std::make_shared<Snapshot>();
    parameters->values = FloatBuffer(layout->size());
    for (uint64_t i = 0; i < 630; ++i) parameters->values.span()[i] = 1.0F / (1 + i);
    checkpoint.parameters = parameters;
    EXPECT_THAT(SaveAsServers(RealFileSystem(), folder_, checkpoint, GetParam()), IsOk());
    SaveStateDict(*layout, parameters->values.span(), "", exported_).IgnoreError();
  }

  std::string PathOfPart() const {
    if (GetParam() == 1) return path_;
    return absl::StrCat(folder_, "/",
                        StripeName{"job", Incarnation(1), Step(5), 1, GetParam()}.FileName());
  }

  const std::string folder_ = PathOf("servers");
  const std::string path_ = folder_ + "/checkpoint-000001-000000000005.safetensors";
  const std::string exported_ = PathOf("exported.pt");
};

INSTANTIATE_TEST_SUITE_P(Servers, CheckpointStateDictTest, ::testing::Values(1, 2, 3, 4));

TEST_P(CheckpointStateDictTest, HasTheBitsOfItsExport) {
  torch::nn::Linear expected(20, 30);
  ASSERT_THAT(LoadStateDict(exported_, *expected), IsOk());
  EXPECT_EQ(expected->weight[29][19].item<float>(), 1.0F / 600);
  for (const std::string& where : {path_, folder_}) {
    torch::nn::Linear loaded(20, 30);
    ASSERT_THAT(LoadStateDict(where, *loaded), IsOk());
    EXPECT_TRUE(torch::equal(loaded->weight, expected->weight));
    EXPECT_TRUE(torch::equal(loaded->bias, expected->bias));
  }
}

TEST_P(CheckpointStateDictTest, ThatIsDamagedAnywhereIsRefusedAndChangesNothing) {
  std::string whole;
  {
    std::ifstream file(PathOfPart(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  torch::nn::Linear model(20, 30);
  const torch::Tensor weight = model->weight.clone();
  for (size_t i = 8; i < whole.size(); i += 13) {
    std::string bytes = whole;
    bytes[i] ^= 0x10;
    std::ofstream(PathOfPart(), std::ios::binary) << bytes;
    EXPECT_FALSE(LoadStateDict(path_, *model).ok()) << "byte " << i;
  }
  EXPECT_TRUE(torch::equal(model->weight, weight));
  ASSERT_TRUE(std::filesystem::remove(PathOfPart()));
  EXPECT_THAT(LoadStateDict(path_, *model).message(), HasSubstr(PathOfPart()));
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
