import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCa } from '@pool/test-kit/ceph/test-ca.ts'

const names = ['*.storage.test']

/** NODE_OPTIONS of a process that resolves those names to this machine. */
export const withStorageNames = `--import=${import.meta.resolve('@pool/test-kit/ceph/storage-names.ts')}`

/** Valid and invalid server certificates, and the file of the trusted CA. */
export const makeIdentities = async () => {
  const [ours, strange] = await Promise.all([createCa('trusted'), createCa('trusted')])
  const [good, otherName, expired, unknownCa] = await Promise.all([
    ours.issue({ names }),
    ours.issue({ names: ['fsn1.other.test'] }),
    ours.issue({ names, notAfter: new Date(Date.now() - 3_600_000) }),
    strange.issue({ names }),
  ])
  const folder = await mkdtemp(join(tmpdir(), 'credentials-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ours.cert)
  return { good, otherName, expired, unknownCa, ca: ours.cert, caFile, remove: () => rm(folder, { recursive: true }) }
}

export type Identities = Awaited<ReturnType<typeof makeIdentities>>
