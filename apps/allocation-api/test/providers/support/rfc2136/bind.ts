import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram } from '@pool/dev/server-process'
import { addresses, findMissingPrograms, keyNames, type ServerKind, zoneText } from './server.ts'

export const bind: ServerKind = {
  name: 'BIND',
  missingPrograms: findMissingPrograms('BIND', ['named'], 'bind9'),
  hasLimitedKeys: true,
  hasTsigErrors: true,
  acceptsUnknownTypes: true,
  async prepare({ folder, port, zone, zoneFile, moreZones, secret }) {
    const settings = join(folder, 'named.conf')
    await writeFile(zoneFile, zoneText(zone))
    await writeFile(
      settings,
      `${keyNames.map(name => `key "${name}" { algorithm hmac-sha256; secret "${secret}"; };`).join('\n')}
controls { };
options {
  directory "${folder}";
  pid-file none;
  lock-file none;
  session-keyfile "${folder}/session.key";
  managed-keys-directory "${folder}";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 port ${port} { ${addresses.includes('::1') ? '::1' : 'none'}; };
  recursion no;
  notify no;
  dnssec-validation no;
  allow-transfer { ${keyNames.map(name => `key "${name}";`).join(' ')} };
};
zone "${zone}" {
  type primary;
  file "${zoneFile}";
  update-policy {
    grant full.key.test zonesub ANY;
    grant limited.key.test subdomain limited.${zone}. ANY;
  };
};
${moreZones.map(other => `zone "${other}" { type primary; file "${other}"; allow-update { key "full.key.test"; }; };\n`).join('')}`,
      { mode: 0o600 },
    )
    return [findProgram('named') ?? '', '-g', '-n', '1', '-c', settings]
  },
}
