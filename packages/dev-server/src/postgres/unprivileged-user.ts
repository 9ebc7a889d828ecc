import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PlainError } from '../user-error.ts'

export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
}

/** How to start a program as the account that owns the data. */
export interface Launch {
  /** Absent when the programs run as whoever we are. */
  readonly account?: Account
  command(
    program: string,
    args: readonly string[],
  ): {
    file: string
    args: string[]
    options: { uid?: number; gid?: number }
  }
}

/** Accounts as `/etc/passwd` names them. Other directories (LDAP) are left out: initdb itself looks the name up. */
export function parsePasswd(text: string): Account[] {
  return text.split('\n').flatMap(line => {
    const [name, , uid, gid] = line.split(':')
    // macOS writes its nobody as -2, which is the unsigned 4294967294 for the kernel.
    return name && uid && gid ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }] : []
  })
}

/** Whether `account`, with no other groups, may search a folder. Access lists are not looked at. */
export function maySearch(account: Account, folder: { uid: number; gid: number; mode: number }): boolean {
  if (folder.uid === account.uid) return (folder.mode & 0o100) !== 0
  if (folder.gid === account.gid) return (folder.mode & 0o010) !== 0
  return (folder.mode & 0o001) !== 0
}

function reaches(account: Account, folder: string): boolean {
  for (let path = realpathSync(folder); ; path = dirname(path)) {
    if (!maySearch(account, statSync(path))) return false
    if (path === dirname(path)) return true
  }
}

function findSetpriv(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/bin', '/bin', '/usr/sbin']
  return folders.map(folder => join(folder, 'setpriv')).find(existsSync)
}

/**
 * Postgres refuses to run as root. As root, it is started as the account that owns the cluster, or as `nobody`.
 * Programs or data below a folder that is closed to that account (a clone in root's home) are common, and opening
 * the folder is not ours to do: there, the server keeps the one capability that passes closed folders. It still is
 * not root, but could read root's files; so this is done only where it is needed.
 */
export function chooseLaunch(cluster: string, inside: string, folders: readonly string[]): Launch {
  const owner = existsSync(cluster) ? statSync(cluster).uid : undefined
  const self = process.getuid?.()
  if (self !== 0) {
    if (owner !== undefined && self !== undefined && owner !== self) {
      throw new PlainError(`${cluster} belongs to user ${owner}, not to you: start as that user, or with other data`)
    }
    return { command: (file, args) => ({ file, args: [...args], options: {} }) }
  }

  const accounts = parsePasswd(readFileSync('/etc/passwd', 'utf8'))
  const account = accounts.find(one => (owner === undefined ? one.name === 'nobody' : one.uid === owner))
  if (account === undefined || account.uid === 0) {
    const who = owner === undefined ? 'no account nobody in /etc/passwd' : `${cluster} belongs to user ${owner}`
    throw new PlainError(`${who}: Postgres does not run as root and needs an unprivileged account of /etc/passwd`)
  }
  const { uid, gid } = account
  const closed = [inside, ...folders].find(folder => !reaches(account, folder))
  if (closed === undefined)
    return { account, command: (file, args) => ({ file, args: [...args], options: { uid, gid } }) }

  const setpriv = findSetpriv()
  if (setpriv === undefined) {
    throw new PlainError(
      `${closed} is closed to ${account.name}, as whom Postgres runs under root: install setpriv
      (util-linux), or start as another user, or move the project out of the closed folder`.replace(/\s+/g, ' '),
    )
  }
  // access(2), with which a server looks for its own programs, ignores capabilities unless that bit is set.
  const drop = ['--securebits=+no_setuid_fixup', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const keep = ['--inh-caps=-all,+dac_override', '--ambient-caps=-all,+dac_override']
  return { account, command: (file, args) => ({ file: setpriv, args: [...drop, ...keep, file, ...args], options: {} }) }
}
