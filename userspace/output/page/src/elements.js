// Elements of the document, made one by one.

/** A new element with this class, at the end of its parent. */
export function appendElement(tag, className, parent) {
  const element = document.createElement(tag);
  element.className = className;
  parent.append(element);
  return element;
}
