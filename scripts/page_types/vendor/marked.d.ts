// The reader of markdown.
export class Marked {
  constructor(options: { gfm: boolean; breaks: boolean; renderer: Record<string, (this: any, token: any) => string> });
  parse(text: string): string;
}
