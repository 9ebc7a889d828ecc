import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram } from '@pool/dev/server-process'
import { addresses, findMissingPrograms, keyNames, type ServerKind, zoneText } from './server.ts'

export const knot: ServerKind = {
  name: 'Knot',
  missingPrograms: findMissingPrograms('Knot DNS', ['knotd'], 'knot'),
  hasLimitedKeys: true,
  hasTsigErrors: true,
  acceptsUnknownTypes: true,
  async prepare({ folder, port, zone, zoneFile, moreZones, secret }) {
    const settings = join(folder, 'knot.conf')
    await writeFile(zoneFile, zoneText(zone))
    await writeFile(
      settings,
      `server:
    rundir: ${folder}
    listen: [${addresses.map(address => `${address}@${port}`).join(', ')}]
    tcp-workers: 1
    udp-workers: 1
    background-workers: 1
database:
    storage: ${folder}
    journal-db-max-size: 256M
    journal-db-mode: asynchronous
log:
  - target: stderr
    any: warning
key:
${keyNames.map(id => `  - id: ${id}\n    algorithm: hmac-sha256\n    secret: ${secret}`).join('\n')}
acl:
  - id: full
    key: full.key.test
    action: [transfer, update]
  - id: reader
    key: [reader.key.test, limited.key.test]
    action: transfer
  - id: limited
    key: limited.key.test
    action: update
    update-owner: name
    update-owner-match: sub-or-equal
    update-owner-name: limited.${zone}.
zone:
  - domain: ${zone}
    storage: ${folder}
    file: ${zoneFile}
    acl: [full, reader, limited]
    zonefile-sync: -1
${moreZones.map(other => `  - domain: ${other}\n    storage: ${folder}\n    file: ${other}\n    acl: [full, reader]\n    zonefile-sync: -1\n`).join('')}`,
      { mode: 0o600 },
    )
    return [findProgram('knotd') ?? '', '-c', settings]
  },
}
