import { readdirSync, readFileSync } from 'node:fs'

/** The programs of the cluster of that folder that run: its configuration is in their environment (proc(5)). */
export const running = (folder: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        const isOfIt = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`CEPH_CONF=${folder}/`)
        return isOfIt && !program.endsWith('/sh') ? [program] : []
      } catch {
        // It ended meanwhile, or is another account's.
        return []
      }
    })
