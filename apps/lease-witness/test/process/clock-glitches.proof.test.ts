import './clock-glitches.ci.test.ts'
