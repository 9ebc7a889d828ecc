import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { getuid } from 'node:process'
import { ConfigIssuesError } from '@pool/runtime/service/env'

const GROUP_WRITE = 0o020
const OTHERS_WRITE = 0o002
const STICKY = 0o1000

const readTable = async (path: string): Promise<readonly (readonly string[])[]> =>
  (await readFile(path, 'utf8').catch(() => '')).split('\n').map(line => line.split(':'))

/** Whether this machine has another user in the group. The group of a volume of Kubernetes has none. */
const hasOtherMember = async (gid: number, uid: number): Promise<boolean> => {
  const users = await readTable('/etc/passwd')
  const [, , , members = ''] = (await readTable('/etc/group')).find(([, , id]) => id === String(gid)) ?? []
  const own = users.find(([, , id]) => id === String(uid))?.[0]
  return (
    users.some(([, , id, group]) => group === String(gid) && id !== String(uid) && id !== '0') ||
    members.split(',').some(member => member !== '' && member !== own && member !== 'root')
  )
}

/** What makes `path` another user's, as the end of a sentence; null: nothing, or it does not exist. */
const findForeignOwner = async (path: string, uid: number): Promise<string | null> => {
  const found = await stat(path).catch(() => null)
  if (!found) return null
  if (found.uid !== uid && found.uid !== 0) return `${path} belongs to another user (uid ${found.uid})`
  if (found.mode & OTHERS_WRITE) return `${path} can be written by every user`
  if (!(found.mode & GROUP_WRITE) || !(await hasOtherMember(found.gid, uid))) return null
  return `${path} can be written by other users of the group ${found.gid}`
}

/** Whoever can write to a folder without the sticky bit can replace what is in it. A volume is for those who have it. */
const findOpenParent = async (path: string): Promise<string | null> => {
  const parent = dirname(path)
  if (parent === path) return null
  const [found, above] = await Promise.all([parent, dirname(parent)].map(each => stat(each).catch(() => null)))
  const isOpen = found && found.mode & OTHERS_WRITE && !(found.mode & STICKY) && found.dev === above?.dev
  return isOpen ? `${parent} can be written by every user` : findOpenParent(parent)
}

/**
 * What another user of this machine can change in the folder of the deployments, as the end of a sentence; null: nothing. Terraform
 * runs what it finds there, so whoever can write there acts as the service.
 */
export const findForeignAccess = async (folder: string): Promise<string | null> => {
  const uid = getuid?.()
  if (uid === undefined) return null
  const path = resolve(folder)
  // It, or a folder above it, can be a symbolic link.
  const target = await realpath(path).catch(() => path)
  const parts = ['work', 'state'].map(name => join(target, name))
  const entries = parts.map(async part => (await readdir(part).catch(() => [])).map(name => join(part, name)))
  for (const each of [target, ...parts, ...(await Promise.all(entries)).flat()]) {
    const foreign = await findForeignOwner(each, uid)
    if (foreign !== null) return foreign
  }
  return (await findOpenParent(path)) ?? (await findOpenParent(target))
}

export const CORRECT_FOLDER = 'give it to the user of the service alone: chown it, then chmod -R go-w'

/** Throws a ConfigIssuesError if another user can change something in the folder. */
export const requireOwnFolder = async (folder: string): Promise<void> => {
  const foreign = await findForeignAccess(folder)
  if (foreign === null) return
  throw new ConfigIssuesError([{ variable: 'PDM_DEPLOYMENTS_DIR', detail: `${foreign}; ${CORRECT_FOLDER}` }])
}
