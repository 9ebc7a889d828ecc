export interface CephPaths {
  readonly folder: string
  readonly clusterId: string
  readonly osdId: string
  readonly monitorPort: number
  readonly gatewayPort: number
}

/**
 * A cluster of one monitor, one object store in memory and one gateway, on loopback, configured for a fast start:
 * https://docs.ceph.com/en/pacific/rados/configuration/. It keeps nothing and tolerates no failure.
 */
export const renderConfiguration = ({
  folder,
  clusterId,
  osdId,
  monitorPort,
  gatewayPort,
}: CephPaths): string => `[global]
fsid = ${clusterId}
mon host = v2:127.0.0.1:${monitorPort}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
# Report a port in use immediately instead of trying three times, 5 s apart.
ms bind retry count = 1

# Use only the directory, which an unprivileged user can write to.
keyring = ${folder}/keyring
run dir = ${folder}
admin socket =
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw
log file =
log to stderr = true
err to stderr = true
debug rocksdb = 0
mon cluster log file =

# By default, a proposal waits one second for others; a start needs a dozen proposals.
paxos propose interval = 0.05
mon tick interval = 1
mon data avail crit = 1
mon allow pool size one = true
mon max pg per osd = 10000
client mount timeout = 20

osd objectstore = memstore
osd uuid = ${osdId}
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off

rgw frontends = beast ssl_endpoint=127.0.0.1:${gatewayPort} ssl_certificate=${folder}/cert.pem ssl_private_key=${folder}/key.pem
rgw thread pool size = 8
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw run sync thread = false
# Accept requests for any region: the storage provider has several.
rgw relaxed region enforcement = true
`
