import type { ICruiseOptions, IForbiddenRuleType } from 'dependency-cruiser'

/** A pattern of paths for each room of the apps. */
export const rooms: readonly string[]
/** The patterns of everything that must be pure. */
export const pure: readonly string[]

declare const rules: {
  readonly forbidden: (IForbiddenRuleType & { name: string })[]
  readonly options: ICruiseOptions & { tsConfig: { fileName: string } }
}
export default rules
