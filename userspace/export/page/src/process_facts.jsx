// Facts about the chosen process: its labels and its runtime.
import {inert} from './format.js';
import {processUrl} from './questions.js';
import {useResource} from './resource.js';

// In the order in which they are shown. Others come behind them, by their own names.
const WORDS = {
  'service.name': 'service', 'service.version': 'version', 'service.namespace': 'service namespace', 'deployment.environment.name': 'environment',
  'k8s.namespace.name': 'namespace', 'k8s.pod.name': 'pod', 'k8s.container.name': 'container', 'container.image.name': 'image', 'container.image.tags': 'tags',
};

/** [[name, value]] of a process as /api/processes tells it */
export function factsOf({labels = {}, runtime = null} = {}) {
  const known = Object.keys(WORDS).filter((label) => label in labels);
  const others = Object.keys(labels).filter((label) => !(label in WORDS)).sort();
  return [...known, ...others].map((label) => [WORDS[label] ?? label, labels[label]]).concat(runtime ? [['.NET', runtime]] : []);
}

export function ProcessFacts({state}) {
  const {data} = useResource(processUrl(state), 0);
  const process = data?.processes?.find(({pid}) => pid === state.pid);
  const facts = factsOf(process);
  if (facts.length === 0) return null;
  return (
    <dl class="process-facts" aria-label="Labels of the process">
      {facts.map(([name, value]) => <div key={name}><dt>{inert(name)}</dt><dd>{inert(String(value))}</dd></div>)}
    </dl>
  );
}
