import { readdir, readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

const GROUP_WRITE = 0o020
const OTHERS_WRITE = 0o002

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

const listFolders = async (root: string): Promise<readonly string[]> => {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  return [root, ...entries.filter(entry => entry.isDirectory()).map(entry => join(entry.parentPath, entry.name))]
}

/**
 * What another user of this machine can change in the folder of the deployments, as the end of a sentence; null: nothing. Terraform
 * runs what it finds there, so whoever can write there acts as the service.
 */
export const findForeignAccess = async (folder: string): Promise<string | null> => {
  const uid = process.getuid?.()
  if (uid === undefined) return null
  for (const path of await listFolders(resolve(folder))) {
    const found = await stat(path).catch(() => null)
    if (!found) continue
    if (found.uid !== uid && found.uid !== 0) return `${path} belongs to another user (uid ${found.uid})`
    if (found.mode & OTHERS_WRITE) return `${path} can be written by every user`
    if (found.mode & GROUP_WRITE && (await hasOtherMember(found.gid, uid)))
      return `${path} can be written by other users of the group ${found.gid}`
  }
  return null
}

export const CORRECT_FOLDER = 'give it to the user of the service alone: chown it, then chmod -R go-w'
