import { readdirSync, readFileSync } from 'node:fs'

/** The running programs of the cluster in this folder, whose configuration is in their environment (proc(5)). */
export const findRunningPrograms = (folder: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        const isInCluster = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`CEPH_CONF=${folder}/`)
        return isInCluster && !program.endsWith('/sh') ? [program] : []
      } catch {
        // The process has exited, or belongs to another user.
        return []
      }
    })
