/** The part of V8's CPU profiles (`.cpuprofile`) that is used here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: readonly number[]
  }[]
  /** The node of each sample, and the microseconds since the one before. */
  readonly samples?: readonly number[]
  readonly timeDeltas?: readonly number[]
}

/** A function under one stack of callers. Times are in microseconds. */
export interface Frame {
  readonly name: string
  readonly selfUs: number
  readonly totalUs: number
  readonly children: readonly Frame[]
}

/** `zone-table.ts` of any machine: the package or the app and its file, without where it is installed. */
const shortenUrl = (url: string): string => {
  const path = url.replace(/^file:\/\//, '').replace(/\?.*$/, '')
  const installed = path.lastIndexOf('/node_modules/')
  if (installed >= 0) return path.slice(installed + '/node_modules/'.length)
  return /\/(?:apps|packages)\/(.*)$/.exec(path)?.[1] ?? path
}

/** With the place of its definition; V8 counts lines from 0. Pseudo-functions such as `(program)` have none. */
export const toFrameName = ({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string => {
  const name = functionName || '(anonymous)'
  return url === '' ? name : `${name} ${shortenUrl(url)}:${lineNumber + 1}`
}

/** The time in which the process waited, and that of the profiler itself. */
const isLeftOut = (name: string): boolean => name === '(idle)' || name.includes(' perf/src/profile/')

interface MutableFrame {
  name: string
  selfUs: number
  totalUs: number
  children: MutableFrame[]
}

/** Adds the times of frames that have one name and one caller: V8 has several nodes for a function with several versions. */
const merge = (frames: readonly MutableFrame[]): MutableFrame[] =>
  Array.from(
    Map.groupBy(frames, ({ name }) => name),
    ([name, same]) => ({
      name,
      selfUs: same.reduce((sum, frame) => sum + frame.selfUs, 0),
      totalUs: same.reduce((sum, frame) => sum + frame.totalUs, 0),
      children: merge(same.flatMap(({ children }) => children)),
    }),
  ).sort((a, b) => b.totalUs - a.totalUs)

/** The tree of calls, without what is not the work of the service. */
export const toTree = ({ nodes, samples = [], timeDeltas = [] }: CpuProfile): Frame => {
  const selfUs = new Map<number, number>()
  for (const [index, id] of samples.entries())
    selfUs.set(id, (selfUs.get(id) ?? 0) + Math.max(0, timeDeltas[index] ?? 0))
  const byId = new Map(nodes.map(node => [node.id, node]))
  const toFrame = (id: number): MutableFrame => {
    const node = byId.get(id)
    const children = (node?.children ?? []).map(toFrame).filter(child => !isLeftOut(child.name) && child.totalUs > 0)
    const own = selfUs.get(id) ?? 0
    return {
      name: node ? toFrameName(node.callFrame) : '',
      selfUs: own,
      totalUs: own + children.reduce((sum, { totalUs }) => sum + totalUs, 0),
      children,
    }
  }
  const [root] = nodes
  if (!root) throw new Error('the profile is empty')
  return { ...toFrame(root.id), children: merge(toFrame(root.id).children), name: 'all' }
}

export interface Cost {
  readonly name: string
  /** Of the time in which the process did not wait. */
  readonly share: number
}

/** The functions with the largest time of their own, under any caller. */
export const findLargestCosts = (tree: Frame, count: number): Cost[] => {
  const selfUs = new Map<string, number>()
  const visit = (frame: Frame): void => {
    selfUs.set(frame.name, (selfUs.get(frame.name) ?? 0) + frame.selfUs)
    frame.children.forEach(visit)
  }
  visit(tree)
  return Array.from(selfUs, ([name, us]) => ({ name, share: us / tree.totalUs }))
    .sort((a, b) => b.share - a.share)
    .slice(0, count)
}
