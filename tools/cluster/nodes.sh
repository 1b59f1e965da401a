# shellcheck shell=bash
# Shell functions that make nodes of a cluster on this machine, for tools/cluster/try and tools/bench/comparison.
#
# A node is a set of namespaces: it has its own host name, network address, processes, /tmp, /run and /dev/shm. All
# nodes see the same other files, as with a shared file system. Nothing of it is left when the tool has ended.

NODES_FOLDER=''  # of files that the nodes share
declare -A NODE_PID=()

# make_nodes COUNT: makes node1 to nodeCOUNT, with addresses 10.78.0.1 and so on. The tool must be in namespaces of
# its own (enter_own_namespaces).
make_nodes() {
  local node
  sluice_temporary NODES_FOLDER cluster -d
  chmod 755 "$NODES_FOLDER"
  printf '127.0.0.1 localhost\n' >"$NODES_FOLDER/hosts"
  for ((node = 1; node <= $1; ++node)); do echo "10.78.0.$node node$node" >>"$NODES_FOLDER/hosts"; done
  ip link set lo up
  ip link add nodes type bridge
  ip link set nodes up
  for ((node = 1; node <= $1; ++node)); do make_node "$node"; done
}

make_node() {
  local node=$1
  unshare --uts --net --mount --pid --fork --kill-child --mount-proc \
    bash -c "$(declare -f become_node); become_node \"\$@\"" _ "node$node" "$NODES_FOLDER" "$NODES_FOLDER" "$SLUICE_ROOT" &
  until [[ -e $NODES_FOLDER/node$node.up ]]; do
    kill -0 $! || return
    sleep 0.05
  done
  NODE_PID[node$node]=$(pgrep -P $!)
  ip link add "veth$node" type veth peer name eth0 netns "${NODE_PID[node$node]}"
  ip link set "veth$node" master nodes up
  on "node$node" ip address add "10.78.0.$node/24" dev eth0
  on "node$node" ip link set eth0 up
}

# become_node NAME FOLDER KEPT…: the first process of a node. Its /tmp, /run and /dev/shm are its own, but for the
# folders KEPT, which may lie in /tmp.
become_node() {
  local name=$1 folder=$2 kept place=0
  shift 2
  set -e
  hostname "$name"
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /dev/shm
  for kept in "$@"; do
    mkdir -p "/run/kept/$((++place))"
    mount --bind "$kept" "/run/kept/$place"
  done
  mount -t tmpfs -o mode=1777 tmpfs /tmp
  place=0
  for kept in "$@"; do
    mkdir -p "$kept"
    mount --bind "/run/kept/$((++place))" "$kept"
  done
  mount --bind "$folder/hosts" /etc/hosts
  mkdir -p /run/sshd /run/munge
  ip link set lo up
  touch "$folder/$name.up"
  exec sleep infinity
}

# on NODE COMMAND…: runs a command on a node.
on() {
  local node=$1
  shift
  nsenter --target "${NODE_PID[$node]}" --uts --net --mount --pid --wdns="$PWD" -- "$@"
}

# start_sshds COUNT: an sshd on each of the nodes that lets this user in without a password, as on a cluster. ssh
# finds them with -F "$NODES_FOLDER/ssh_config".
start_sshds() {
  local count=$1 node key=$NODES_FOLDER/key
  ssh-keygen -q -t ed25519 -N '' -f "$key"
  cp "$key.pub" "$NODES_FOLDER/authorized_keys"
  cat >"$NODES_FOLDER/sshd_config" <<CONFIG
HostKey $key
AuthorizedKeysFile $NODES_FOLDER/authorized_keys
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
CONFIG
  cat >"$NODES_FOLDER/ssh_config" <<CONFIG
IdentityFile $key
UserKnownHostsFile $NODES_FOLDER/known_hosts
StrictHostKeyChecking accept-new
LogLevel ERROR
CONFIG
  for ((node = 1; node <= count; ++node)); do
    on "node$node" /usr/sbin/sshd -D -e -f "$NODES_FOLDER/sshd_config" 2>"$NODES_FOLDER/sshd$node.log" &
  done
  for ((node = 1; node <= count; ++node)); do wait_for "sshd on node$node" on node1 ssh -F "$NODES_FOLDER/ssh_config" "node$node" true; done
}

# wait_for WHAT COMMAND…: repeats a command until it succeeds, for up to 30 s.
wait_for() {
  local what=$1 try
  shift
  for ((try = 0; try < 150; ++try)); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  echo "$SLUICE_TOOL: no $what within 30 s; its files: $(ls "$NODES_FOLDER")" >&2
  tail -n 20 "$NODES_FOLDER"/*.log >&2 || true
  return 1
}

# enter_own_namespaces ARGUMENT…: starts the tool again, in a network and with mounts of its own.
enter_own_namespaces() {
  [[ -z ${SLUICE_IN_NAMESPACES:-} ]] || return 0
  SLUICE_IN_NAMESPACES=1 exec unshare --net --mount "$0" "$@"
}
