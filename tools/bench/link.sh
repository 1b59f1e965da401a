# shellcheck shell=bash
# A link of a given rate in both directions to a server in a network namespace of its own. Source this file as
# root. Call make_link RATE, then train_over_link …, then remove_link.

readonly LINK_NAMESPACE=sluice-$$ LINK_HOST=10.213.77.2

# make_link RATE: RATE is in the words of tc, for example 1gbit.
make_link() {
  local near=sluice-n$$ far=sluice-f$$
  ip netns add "$LINK_NAMESPACE"
  ip link add "$near" type veth peer name "$far" netns "$LINK_NAMESPACE"
  ip address add 10.213.77.1/30 dev "$near"
  ip link set "$near" up
  ip netns exec "$LINK_NAMESPACE" ip address add "$LINK_HOST/30" dev "$far"
  ip netns exec "$LINK_NAMESPACE" ip link set "$far" up
  local shape=(root tbf rate "$1" burst 256kb latency 50ms)
  tc qdisc add dev "$near" "${shape[@]}"
  ip netns exec "$LINK_NAMESPACE" tc qdisc add dev "$far" "${shape[@]}"
}

remove_link() { ip netns del "$LINK_NAMESPACE" 2>/dev/null || true; }

# train_over_link SERVER TRAIN WORKERS FLAG…: runs the program SERVER at the far end and WORKERS times TRAIN at
# this end. Prints what all of them print.
train_over_link() {
  local server=$1 train=$2 workers=$3 i
  shift 3
  # Both ends are on one node, but must not use its shared memory.
  ip netns exec "$LINK_NAMESPACE" "$server" --listen="$LINK_HOST:7070" --workers="$workers" \
    --insecure-on-network --shared-memory=off &
  for ((i = 0; i < workers; ++i)); do
    "$train" --server="$LINK_HOST:7070" --insecure-on-network --name="worker-$i" "$@" &
  done
  wait
}

# Prints the bytes that the kernel has carried over the link: from the workers, and to them.
link_bytes() {
  local counters=/sys/class/net/sluice-n$$/statistics
  echo "$(<"$counters/tx_bytes") $(<"$counters/rx_bytes")"
}
