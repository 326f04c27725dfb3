/** For definitions of methods that are served here and called by others only. Each side of it throws an Error. */
export const clientSide = {
  requestSerialize: (): never => notServedHere(),
  responseDeserialize: (): never => notServedHere(),
};

function notServedHere(): never {
  throw new Error('only the server side of this method is here');
}
