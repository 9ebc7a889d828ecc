import type { ICruiseOptions, IForbiddenRuleType } from 'dependency-cruiser'

declare const rules: {
  readonly forbidden: (IForbiddenRuleType & { name: string })[]
  readonly options: ICruiseOptions & { tsConfig: { fileName: string } }
}
export default rules
