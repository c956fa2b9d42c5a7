// Links that save a profile for other tools.
export const PROFILE_FORMATS = {pprof: 'pprof', speedscope: 'speedscope', html: 'HTML', svg: 'SVG', folded: 'folded', json: 'JSON'};
export const DIFF_FORMATS = {html: 'HTML', text: 'text', difffolded: 'folded'};

export function Downloads({urlOfFormat, formats = PROFILE_FORMATS}) {
  return (
    <span class="downloads">
      {Object.entries(formats).map(([format, text]) => <a key={format} href={urlOfFormat(format)} download="">{text}</a>)}
    </span>
  );
}
