import './cool-off.ci.test.ts'
