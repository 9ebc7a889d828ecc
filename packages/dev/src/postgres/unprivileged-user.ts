import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UserError } from '../user-error.ts'

export interface OsUser {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** Runs a program as the user that owns the data. */
export interface UserLaunch {
  /** Absent if programs run as the current user. */
  readonly user?: OsUser
  command(
    program: string,
    args: readonly string[],
  ): {
    file: string
    args: string[]
    options: { uid?: number; gid?: number }
  }
}

/** Users of `/etc/passwd`. Other directories (LDAP) are not supported. */
export function parsePasswd(text: string): OsUser[] {
  return text.split('\n').flatMap(line => {
    const [name, , uid, gid] = line.split(':')
    // macOS writes the id of nobody as -2, which is 4294967294 for the kernel.
    return name && uid && gid ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }] : []
  })
}

/** Whether `user`, without supplementary groups, may search a directory. Ignores ACLs. */
export function canSearch(user: OsUser, folder: { uid: number; gid: number; mode: number }): boolean {
  if (folder.uid === user.uid) return (folder.mode & 0o100) !== 0
  if (folder.gid === user.gid) return (folder.mode & 0o010) !== 0
  return (folder.mode & 0o001) !== 0
}

function canReach(user: OsUser, folder: string): boolean {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    if (!canSearch(user, statSync(path))) return false
    if (path === dirname(path)) return true
  }
}

function findSetpriv(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/bin', '/bin', '/usr/sbin']
  return folders.map(folder => join(folder, 'setpriv')).find(existsSync)
}

/**
 * Postgres does not run as root. For root, it runs as the user that owns the cluster, or as `nobody`. If that user cannot
 * reach the programs or the data (a clone in root's home), the server keeps CAP_DAC_OVERRIDE, because this function must
 * not change permissions of directories. The server could then read root's files, so it happens only if necessary.
 */
export function launchAsUnprivileged(cluster: string, dataDir: string, programFolders: readonly string[]): UserLaunch {
  const owner = existsSync(cluster) ? statSync(cluster).uid : undefined
  const self = process.getuid?.()
  if (self !== 0) {
    if (owner !== undefined && self !== undefined && owner !== self) {
      throw new UserError(`${cluster} belongs to user ${owner}: run as that user, or set DATA_DIR`)
    }
    return { command: (file, args) => ({ file, args: [...args], options: {} }) }
  }

  const users = parsePasswd(readFileSync('/etc/passwd', 'utf8'))
  const user = users.find(({ name, uid }) => (owner === undefined ? name === 'nobody' : uid === owner))
  if (user === undefined || user.uid === 0) {
    const reason = owner === undefined ? '/etc/passwd has no user nobody' : `${cluster} belongs to user ${owner}`
    throw new UserError(`${reason}: Postgres does not run as root and needs an unprivileged user in /etc/passwd`)
  }
  const { uid, gid } = user
  const closed = [dataDir, ...programFolders].find(folder => !canReach(user, folder))
  if (closed === undefined) return { user, command: (file, args) => ({ file, args: [...args], options: { uid, gid } }) }

  const setpriv = findSetpriv()
  if (setpriv === undefined) {
    throw new UserError(
      `Postgres runs as ${user.name}, which cannot access ${closed}: install setpriv (util-linux), run as another user, or move the project`,
    )
  }
  // access(2), which the server uses to find its programs, ignores capabilities unless this bit is set.
  const drop = ['--securebits=+no_setuid_fixup', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const keep = ['--inh-caps=-all,+dac_override', '--ambient-caps=-all,+dac_override']
  return { user, command: (file, args) => ({ file: setpriv, args: [...drop, ...keep, file, ...args], options: {} }) }
}
