// The page of `clrsampler serve`.
import {render} from 'preact';
import {App} from './app.jsx';

const root = document.getElementById('app');
root.replaceChildren();
render(<App />, root);
