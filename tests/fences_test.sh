#!/usr/bin/env bash
# Enforces who may include what: each foreign library stays behind its own door, and the rooms do
# not look into each other. One test case per fence.
set -euo pipefail

# The files in which the service meets gRPC and the generated code. A new door is added here.
readonly DOORS=('common/wire/*' 'server/rpc/*' 'worker/connection/grpc/*')

# All fences: a name, the headers it holds in, the files that may include them.
fences() {
  # The benchmark's program is no part of Sluice: MPI is what it compares with.
  fence MpiStaysInItsBootstrap '(^|/)mpi(-ext)?\.h$' common/launch/mpi_bootstrap.cc \
    tools/bench/peers/mpi_peer_main.cc
  fence GrpcStaysAtTheDoors '^grpc(pp|\+\+|_impl)?/|\.grpc\.pb\.h$' "${DOORS[@]}"
  fence ProtobufStaysAtTheDoors '^google/protobuf/|\.pb\.h$' "${DOORS[@]}" common/launch/job_ticket.cc \
    common/launch/launch_brief.cc server/program/config_json.cc server/durable/format/saved_state.cc
  # The race of optimizers compares with LibTorch's; that of codecs takes gradients from training.
  fence LibTorchStaysInWorkerTorch '^(torch|ATen|c10)/' 'worker/torch/*' \
    tools/bench/optimizer_race/torch_optimizer_side.cc tools/bench/codecs/torch_model_vectors.cc
  fence ZstdStaysInItsCodec '(^|/)(zstd(_errors)?|zdict)\.h$' common/encoding/bytes/zstd_codec.cc
  fence OpenSslStaysBehindTwoHeaders '^openssl/' common/security/certificates.cc common/security/secret.cc
  fence CommonIncludesNoRoomAbove '(^|\.\./)(server|worker)/' 'server/*' 'worker/*' 'tools/*'
  fence ServerNeverIncludesWorker '(^|\.\./)worker/' 'common/*' 'worker/*' 'tools/*'
  # A job is either of the two: the one file of the mains' layer that sees both.
  fence WorkerNeverIncludesServer '(^|\.\./)server/' 'common/*' 'server/*' 'tools/*' worker/job.cc
  fence NoRoomIncludesTools '(^|\.\./)tools/' 'tools/*'
}

# fence NAME HEADERS FILE_PATTERN…: prints "NAME<tab>" and the files outside the patterns that include
# a header which the regular expression HEADERS matches.
fence() {
  local name=$1 headers=$2 breaches='' file line header
  shift 2
  while IFS=$'\t' read -r file line header; do
    [[ $header =~ $headers ]] || continue
    matches_any "$file" "$@" || breaches+=" $file:$line:$header"
  done <<<"$INCLUDES"
  printf '%s\t%s\n' "$name" "${breaches# }"
}

matches_any() {
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    # shellcheck disable=SC2053  # A pattern, not a string.
    [[ $file == $pattern ]] && return
  done
  return 1
}

# Prints every #include of the sources under the folder $1: file, line, header.
includes_under() {
  local include='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'
  # -R, because Bazel hands the sources over as links; grep's 1 says that there are none.
  (cd "$1" && grep -RHnE --include='*.h' --include='*.cc' "$include" common server worker tools) |
    sed -E 's/^([^:]+):([0-9]+):[^<"]*[<"]([^>"]+).*/\1\t\2\t\3/' || true
}

CASES='' FAILURES=0

# record CASE PROBLEM: notes a test case, which passed if there is no problem.
record() {
  local name=$1 problem=$2 verdict=''
  if [[ -n $problem ]]; then
    echo "$name: $problem"
    verdict="<failure message=\"$(escaped "$problem")\"/>"
    FAILURES=$((FAILURES + 1))
  fi
  CASES+="  <testcase classname=\"Fences\" name=\"$name\">$verdict</testcase>"$'\n'
}

escaped() {
  sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g' <<<"$1"
}

check_sources() {
  local name breaches room
  INCLUDES=$(includes_under "$(dirname "$(readlink -f WORKSPACE)")")
  while IFS=$'\t' read -r name breaches; do
    record "$name" "${breaches:+must not be included here: $breaches}"
  done < <(fences)

  # Fences around an empty field would hold for ever.
  local unseen=''
  for room in common server worker tools/bench; do
    [[ $'\n'$INCLUDES == *$'\n'"$room"/* ]] || unseen+=" $room"
  done
  record SeesEveryRoom "${unseen:+no source seen in:$unseen}"
}

# plant FILE HEADER: a source of the planted tree that includes a header.
plant() {
  mkdir -p "$TREE/$(dirname "$1")"
  printf '#include %s\n' "$2" >>"$TREE/$1"
}

# The same check on a tree with one breach of each fence, and beside each what the fence permits.
check_planted_breaches() {
  TREE=$(mktemp -d)
  plant server/shard/shard.cc '<mpi.h>'
  plant common/launch/mpi_bootstrap.cc '<mpi.h>'
  plant tools/bench/peers/mpi_peer_main.cc '<mpi.h>'
  plant tools/bench/harness/process_group.cc '<mpi.h>'
  plant server/shard/shard.h '<grpcpp/grpcpp.h>'
  plant server/rpc/grpc_door.cc '"sluice/v1/parameter_server.grpc.pb.h"'
  plant worker/training/trainer.h '"sluice/v1/training.pb.h"'
  plant common/launch/job_ticket.cc '"sluice/v1/bootstrap.pb.h"'
  plant worker/training/trainer.cc ' <torch/torch.h>  // spaces and a comment'
  plant worker/torch/model.cc '<ATen/ATen.h>'
  plant tools/bench/optimizer_race/torch_optimizer_side.cc '<torch/torch.h>'
  plant tools/bench/optimizer_race/optimizers_main.cc '<torch/torch.h>'
  plant common/codec.cc '"zstd.h"'
  plant common/encoding/bytes/zstd_codec.cc '<zstd.h>'
  plant server/rpc/access/tls.cc '<openssl/ssl.h>'
  plant common/security/certificates.cc '<openssl/x509.h>'
  plant common/tensor/layout.cc '"server/shard/shard.h"'
  plant server/main.cc '"worker/training/trainer.h"'
  plant worker/torch/model.h '"../../server/shard.h"'
  plant worker/job.cc '"server/shard/shard.h"'
  plant worker/job.cc '"worker/training/trainer.h"'
  plant common/base/clock.cc '"tools/bench/harness/cell.h"'
  plant tools/bench/rounds/participant_main.cc '"server/server.h"'
  plant tools/bench/rounds/participant_main.cc '"worker/connection/grpc/connection.h"'
  plant tools/bench/rounds/participant_main.cc '"tools/bench/harness/participant.h"'

  local expected found
  expected=$(printf '%s\t%s\n' \
    MpiStaysInItsBootstrap 'server/shard/shard.cc:1:mpi.h tools/bench/harness/process_group.cc:1:mpi.h' \
    GrpcStaysAtTheDoors server/shard/shard.h:1:grpcpp/grpcpp.h \
    ProtobufStaysAtTheDoors worker/training/trainer.h:1:sluice/v1/training.pb.h \
    LibTorchStaysInWorkerTorch \
    'worker/training/trainer.cc:1:torch/torch.h tools/bench/optimizer_race/optimizers_main.cc:1:torch/torch.h' \
    ZstdStaysInItsCodec common/codec.cc:1:zstd.h \
    OpenSslStaysBehindTwoHeaders server/rpc/access/tls.cc:1:openssl/ssl.h \
    CommonIncludesNoRoomAbove common/tensor/layout.cc:1:server/shard/shard.h \
    ServerNeverIncludesWorker server/main.cc:1:worker/training/trainer.h \
    WorkerNeverIncludesServer worker/torch/model.h:1:../../server/shard.h \
    NoRoomIncludesTools common/base/clock.cc:1:tools/bench/harness/cell.h)
  INCLUDES=$(includes_under "$TREE")
  found=$(fences)
  rm -rf "$TREE"
  record NoticesPlantedBreaches "$(diff <(echo "$expected") <(echo "$found") || true)"
}

main() {
  check_sources
  check_planted_breaches
  printf '<testsuites>\n<testsuite name="Fences">\n%s</testsuite>\n</testsuites>\n' "$CASES" \
    >"${XML_OUTPUT_FILE:-/dev/null}"
  ((FAILURES == 0))
}

main
