#!/bin/sh
# Creates a cluster from the nodes. The first half of them become masters, each with a replica. Ends when all nodes
# are in sync:
#   form.sh <name>:<port>…
# If the nodes already form a cluster, tells them the new addresses of the others, because restarted containers may
# have other addresses.
set -eu
export REDISCLI_AUTH="${REDIS_AUTH:?}"
ask() { # <name>:<port> <command>…
  node=$1
  shift
  redis-cli -e -h "${node%:*}" -p "${node##*:}" "$@"
}
# CLUSTER MEET accepts addresses, but no names.
addresses=
for node in "$@"; do
  ip=$(getent ahostsv4 "${node%:*}" | sed -n '1s/ .*//p')
  addresses="$addresses ${ip:?"$node has no address"}:${node##*:}"
done
if ask "$1" CLUSTER INFO | grep -q '^cluster_slots_assigned:16384'; then
  for address in $addresses; do
    ask "$1" CLUSTER MEET "${address%:*}" "${address##*:}"
  done
else
  # shellcheck disable=SC2086
  redis-cli --cluster create $addresses --cluster-replicas 1 --cluster-yes
fi
# Each node must serve and know the others. Each replica must be in sync with its master, or it cannot take over.
is_ready() { # <name>:<port> <how many nodes>
  ask "$1" CLUSTER INFO | grep -q '^cluster_state:ok' || return 1
  nodes=$(ask "$1" CLUSTER NODES)
  [ "$(echo "$nodes" | grep -c ' connected')" -eq "$2" ] || return 1
  [ "$(echo "$nodes" | grep -c 'slave ')" -eq $(($2 / 2)) ] || return 1
  ask "$1" INFO replication | grep -q -e '^role:master' -e '^master_link_status:up'
}
tries=60
for node in "$@"; do
  until is_ready "$node" $#; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ]; then
      echo "$node does not know all nodes of the cluster, or is not in sync with its master" >&2
      exit 1
    fi
    sleep 1
  done
done
