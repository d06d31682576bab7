// It puts itself into the global scope.
export {};
